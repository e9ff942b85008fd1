"""By which rules the webhook would judge a job: settings, its namespace's labels, exemptions.

    manifest, Namespaces, settings -> Ruling

Of a namespace that may not be read nothing is taken, and that is said. Not known here: namespaces
that the webhook registrations leave out by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from admission.codes import Mode, Operation, Steer
from admission.decision import Policy
from admission.manifests import Manifest
from admission.values import Json, NodeClass
from estimator.deferred import Deferred

if TYPE_CHECKING:
    from admission import inventory, policy_settings, review
    from admission.config import Settings
    from admission.handling import policies
    from admission.listing import Connection, Namespace
    from admission.policy_settings import PolicySettings, SteeringSettings
else:
    inventory = Deferred("admission.inventory")
    policies = Deferred("admission.handling.policies")
    policy_settings = Deferred("admission.policy_settings")
    review = Deferred("admission.review")

IGNORED = "vramgate.dev/webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """How far the webhook would go with one job."""

    policy: Policy
    steer: Steer | None = None
    """How hard the namespace or the settings want it steered; None: as the mode says."""
    remarks: tuple[str, ...] = ()
    """Where the mode comes from, and what could not be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is known of the install and of its namespaces."""

    mode: Mode | None = None
    """Of the command line: counts before every other."""
    settings: Settings | None = None
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    """By name, those that jobs are created in. Empty without a cluster."""

    def of(self, manifest: Manifest, *, namespace: str) -> Ruling:
        """Return the ruling on the job of *manifest*, which belongs to *namespace*.

        Without settings and a cluster: mode `enforce`, which says what a job may come to.
        """
        if self.settings is None and not self.namespaces:
            return Ruling(policy=Policy(mode=self.mode or Mode.ENFORCE))
        asked = _review(manifest, namespace)
        found = self.namespaces.get(namespace)
        judged = policies.Policies(
            policy=self._policy(), steering=self._steering(), cluster=_Labels(found)
        )
        policy = judged.of(asked)
        if self.mode is not None:
            policy = replace(policy, mode=self.mode)
        return Ruling(
            policy=policy,
            steer=judged.steer(asked, policy.mode),
            remarks=(
                *self._remarks(policy, manifest, found),
                *([policy.remark] if policy.remark else ()),
                *_unsent(manifest, found),
            ),
        )

    def _policy(self) -> PolicySettings:
        if self.settings is not None:
            return self.settings.policy
        return policy_settings.PolicySettings(mode=Mode.ENFORCE)

    def _steering(self) -> SteeringSettings:
        if self.settings is not None:
            return self.settings.steering
        return policy_settings.SteeringSettings()

    def _remarks(
        self, policy: Policy, manifest: Manifest, found: Namespace | None
    ) -> tuple[str, ...]:
        """Return where the mode comes from, and what stood in the way of knowing it."""
        lines = []
        if self.settings is not None and not self.settings.policy.enabled:
            lines.append("policy.enabled is false: the webhook lets everything pass unread")
        if found is not None and found.problem:
            lines.append(f"labels of namespace {found.name} are not known: {found.problem}")
        if self.mode is not None:
            return tuple(lines)
        label = inventory.mode_label(_metadata(manifest))
        is_own = label is not None and self._policy().workloads_may_loosen
        if is_own:
            source = f"its label {inventory.MODE_LABEL}"
        elif found is not None and inventory.mode_label(found.metadata) is not None:
            source = f"the label of namespace {found.name}"
        elif self.settings is not None:
            source = "policy.mode of the settings"
        else:
            source = "nobody says another; --config has the install's"
        return (*lines, f"mode {policy.mode}: {source}")


NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class _Labels:
    """What a cluster is asked of one namespace (see `handling.asked.Cluster`)."""

    namespace: Namespace | None

    @property
    def classes(self) -> tuple[NodeClass, ...]:
        """Return no node class: the cards are asked for elsewhere."""
        return ()

    def mode_of(self, _: str) -> Mode | None:
        """Return the mode that its label asks for."""
        return inventory.mode_label(self.namespace.metadata) if self.namespace else None

    def steer_of(self, _: str) -> Steer | None:
        """Return how hard its label wants pods to be steered."""
        return inventory.steer_label(self.namespace.metadata) if self.namespace else None


def namespaces_of(
    manifests: tuple[Manifest, ...], connection: Connection
) -> Mapping[str, Namespace]:
    """Return the namespaces that the jobs would be created in, each asked for once."""
    names = dict.fromkeys(namespace_of(each, connection.namespace) for each in manifests)
    return {name: connection.namespace_of(name) for name in names}


def namespace_of(manifest: Manifest, default: str) -> str:
    """Return the namespace that an object belongs to."""
    return str(_metadata(manifest).get("namespace") or default)


def _unsent(manifest: Manifest, found: Namespace | None) -> tuple[str, ...]:
    """Return that the webhook is not asked, where a label says so."""
    for metadata, whose in ((_metadata(manifest), "its"), (_of(found), "its namespace's")):
        labels = metadata.get("labels")
        if isinstance(labels, Mapping) and labels.get(IGNORED) == "ignore":
            return (f"not sent to the webhook: {whose} label {IGNORED} is ignore",)
    return ()


def _of(found: Namespace | None) -> Json:
    return found.metadata if found is not None else {}


def _review(manifest: Manifest, namespace: str) -> review.Review:
    body, metadata = manifest.body, _metadata(manifest)
    return review.Review(
        uid="",
        api_version=str(body.get("apiVersion") or ""),
        kind=str(body.get("kind") or ""),
        resource="",
        operation=Operation.CREATE,
        namespace=namespace,
        name=str(metadata.get("name") or ""),
        object=body,
    )


def _metadata(manifest: Manifest) -> Json:
    metadata = manifest.body.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}
