"""What mode `enforce` would have denied, by all replicas together.

    the text of `/report` of each replica -> Report -> Merged

Pure. A replica knows what it was asked itself, and since when; nothing is kept when it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from admission.errors import ManifestError
from admission.exemption import moment_text

MAX_DENIALS = 100_000
_LONGEST = 4096


class Denial(BaseModel):
    """One object of one replica's report."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)

    namespace: str = Field(max_length=_LONGEST)
    kind: str = Field(max_length=_LONGEST)
    name: str = Field(max_length=_LONGEST)
    because: str = Field(max_length=_LONGEST)
    verdict: str = Field(max_length=_LONGEST)
    reason: str = Field(max_length=_LONGEST)
    message: str = Field(max_length=_LONGEST)
    first: AwareDatetime
    last: AwareDatetime
    times: int = Field(ge=1)
    exempt_until: str = Field(default="", max_length=_LONGEST)

    def document(self) -> dict[str, Any]:
        """Return it as JSON types, as `/report` has it."""
        moments = {"first": moment_text(self.first), "last": moment_text(self.last)}
        left_out = None if self.exempt_until else {"exempt_until"}
        return {**self.model_dump(mode="json", by_alias=True, exclude=left_out), **moments}


class Report(BaseModel):
    """What one replica answers at `/report`. Keys of later versions are left out."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)

    since: AwareDatetime
    until: AwareDatetime
    forgotten: int = Field(ge=0)
    denials: tuple[Denial, ...] = Field(max_length=MAX_DENIALS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """What became of asking one replica."""

    name: str
    report: Report | None = None
    problem: str = ""
    """Why there is no report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The reports of all replicas as one."""

    replicas: tuple[Replica, ...]
    denials: tuple[Denial, ...]
    """The newest first; an object that several replicas saw is one."""

    @property
    def is_whole(self) -> bool:
        """Return whether every replica answered."""
        return all(replica.report is not None for replica in self.replicas)

    def document(self) -> dict[str, Any]:
        """Return the whole as JSON types."""
        reports = [each.report for each in self.replicas if each.report is not None]
        return {
            "since": moment_text(min(report.since for report in reports)),
            # Before that a replica was not there yet, or one that is gone was.
            "wholeSince": moment_text(max(report.since for report in reports)),
            "until": moment_text(max(report.until for report in reports)),
            "forgotten": sum(report.forgotten for report in reports),
            "isWhole": self.is_whole,
            "replicas": [_replica(each) for each in self.replicas],
            "namespaces": dict(sorted(Counter(each.namespace for each in self.denials).items())),
            "denials": [each.document() for each in self.denials],
        }


def parsed(text: bytes, *, source: str) -> Report:
    """Return the report in *text*.

    Raises:
        ManifestError: if it is none.
    """
    try:
        return Report.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, problem["loc"]))
        raise ManifestError(
            f"{source}: no report of Vramgate's ({place or 'whole'}: {problem['msg'].lower()})",
            hint="it is what a replica answers at /report",
        ) from error


def merged(replicas: Sequence[Replica]) -> Merged:
    """Return the reports of *replicas* as one.

    Raises:
        ManifestError: if there is no report at all.
    """
    reports = [each.report for each in replicas if each.report is not None]
    if not reports:
        reasons = "; ".join(f"{each.name}: {each.problem}" for each in replicas)
        raise ManifestError(f"no replica could be asked ({reasons or 'there is none'})")
    denials = _together(denial for report in reports for denial in report.denials)
    return Merged(replicas=tuple(replicas), denials=denials)


def _together(denials: Iterable[Denial]) -> tuple[Denial, ...]:
    found: dict[tuple[str, ...], Denial] = {}
    for denial in denials:
        key = (denial.namespace, denial.kind, denial.name, denial.because)
        other = found.get(key)
        found[key] = denial if other is None else _both(denial, other)
    return tuple(sorted(found.values(), key=lambda each: each.last, reverse=True))


def _both(one: Denial, other: Denial) -> Denial:
    """Return what two replicas say of one object: the words of the later, all of the times."""
    later = max(one, other, key=lambda each: each.last)
    return later.model_copy(
        update={"first": min(one.first, other.first), "times": one.times + other.times}
    )


def _replica(each: Replica) -> dict[str, Any]:
    if each.report is None:
        return {"name": each.name, "problem": each.problem}
    report = each.report
    return {
        "name": each.name,
        "since": moment_text(report.since),
        "until": moment_text(report.until),
        "denials": len(report.denials),
        "forgotten": report.forgotten,
    }
