"""How far an answer may go: settings, the namespace's labels, the object's own.

Review, settings, Cluster -> Policy, Steer
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from admission.codes import Action, Mode, Steer
from admission.config import PolicySettings, SteeringSettings
from admission.decision import Policy
from admission.handling.asked import Cluster
from admission.inventory import mode_label, steer_label
from admission.review import Review
from admission.values import Json

_BY_MODE = {Mode.ENFORCE: Steer.REQUIRED, Mode.WARN: Steer.PREFERRED, Mode.OFF: Steer.OFF}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The settings, and who knows the labels of namespaces."""

    policy: PolicySettings
    steering: SteeringSettings
    cluster: Cluster

    def of(self, review: Review) -> Policy:
        """Return the install's policy with the mode of the namespace or, where it may, the job."""
        mode = self.mode_of(review.namespace)
        if self.policy.workloads_may_loosen:
            mode = mode_label(_metadata(review)) or mode
        return Policy(
            mode=mode,
            on_unknown=self.policy.on_unknown,
            on_late=Action(self.policy.on_late.value),
        )

    def mode_of(self, namespace: str) -> Mode:
        """Return the mode of a namespace."""
        return self.cluster.mode_of(namespace) or self.policy.mode

    def steer(self, review: Review, mode: Mode) -> Steer:
        """Return how hard to steer: as the object's label says, the namespace's, the settings."""
        return (
            steer_label(_metadata(review))
            or self.cluster.steer_of(review.namespace)
            or self.steering.default
            or _BY_MODE[mode]
        )


def _metadata(review: Review) -> Json:
    metadata = review.object.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}
