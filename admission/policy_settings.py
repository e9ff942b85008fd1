"""The settings about what a verdict leads to, and where pods are steered.

    YAML -> PolicySettings, SteeringSettings (frozen)

An exemption that is over stays valid as a setting: a restart after its end must not fail.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from admission.certificate_settings import LABEL
from admission.codes import Action, Mode, Steer
from admission.section import Section


class LateAction(StrEnum):
    """What may happen to a job whose estimate is not ready in time: never a denial."""

    ALLOW = "allow"
    WARN = "warn"


def _or_off(closed: type[Mode] | type[Steer]) -> BeforeValidator:
    """Return what takes `off` as it is meant: without quotes YAML 1.1 reads it as false."""
    return BeforeValidator(lambda value: closed.OFF if value is False else value)


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("no moment before the year 10000 in UTC") from error


class ExemptionSettings(Section):
    """Jobs that are warned and not denied, until a moment that is written down."""

    namespace: str = Field(max_length=63, pattern=LABEL)
    """The namespace of the jobs."""

    name: str = Field(default="*", max_length=253, pattern=r"^[-a-z0-9.*?]+$")
    """Their names; `*` stands for any text and `?` for one character.

    Of a job whose name is generated, `generateName` is compared.
    """

    kind: str | None = Field(default=None, max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")
    """Their kind, as in manifests. Absent: every kind."""

    until: Annotated[AwareDatetime, AfterValidator(_in_utc)]
    """When it ends, with a time zone: `2026-12-31T00:00:00Z`. Then the verdict counts again."""

    reason: str = Field(min_length=1, max_length=200)
    """Why, for those who read the warning and the audit log."""


class PolicySettings(Section):
    """How a verdict becomes an action."""

    enabled: bool = True
    """`false` lets everything pass at once and in silence: nothing is read, estimated or steered.

    The switch for an emergency; reviews are still counted, as `skipped` in mode `off`.
    """

    mode: Annotated[Mode, _or_off(Mode)] = Mode.WARN
    """`enforce` denies a job that cannot fit, `warn` admits it with a warning, `off` is silent.

    A namespace overrides it by its label `vramgate.dev/mode`. New installs warn.
    """

    on_unknown: Action = Action.WARN
    """What happens to a job that cannot be read. Never more than a warning in mode `warn`."""

    on_late: LateAction = LateAction.WARN
    """What happens to a job whose estimate is not ready within the webhook's timeout."""

    workloads_may_loosen: bool = False
    """Whether label `vramgate.dev/mode` and annotation `vramgate.dev/exempt-until` count on a job.

    Off by default: otherwise whoever may submit a job may also switch its check off.
    """

    exemptions: tuple[ExemptionSettings, ...] = Field(default=(), max_length=1000)
    """Jobs that are warned where they would be denied, each until a moment of its own."""


class SteeringSettings(Section):
    """What `/mutate` writes into the jobs it lets pass."""

    default: Annotated[Steer | None, _or_off(Steer)] = None
    """How hard pods are steered to cards that hold them: `required`, `preferred` or `off`.

    Absent: required where the mode is `enforce`, preferred where it is `warn`. The label
    `vramgate.dev/steer` of a namespace overrides it, and that of an object both.
    """

    termination_messages: bool = True
    """Whether training containers get `terminationMessagePolicy: FallbackToLogsOnError`.

    It leaves the end of a failed container's log in the pod's status: there it says out of memory.
    """

    gate: bool = False
    """Whether a pod whose estimate is late is held by a scheduling gate until it is known.

    `vramgate controller` takes the gate off again, at the latest after `controller.gateSeconds`.
    Only for installs where it runs: without it such a pod waits for ever.
    """
