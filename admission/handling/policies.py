"""How far an answer may go: settings, the namespace's labels, the object's own.

Review, settings, Cluster, now -> Policy, Steer
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime

from admission.codes import Action, Mode, Steer
from admission.decision import Policy
from admission.handling.asked import Cluster
from admission.handling.exemptions import exemption_of, says_exempt
from admission.inventory import mode_label, steer_label
from admission.policy_settings import PolicySettings, SteeringSettings
from admission.review import Review


def utc_now() -> datetime:
    """Return the moment it is."""
    return datetime.now(UTC)


_BY_MODE = {Mode.ENFORCE: Steer.REQUIRED, Mode.WARN: Steer.PREFERRED, Mode.OFF: Steer.OFF}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The settings, and who knows the labels of namespaces."""

    policy: PolicySettings
    steering: SteeringSettings
    cluster: Cluster
    now: Callable[[], datetime] = utc_now
    """Exemptions end by the clock of the wall."""

    def of(self, review: Review) -> Policy:
        """Return the install's policy with the mode of the namespace or, where it may, the job."""
        exemption, remark = exemption_of(review, self.policy, now=self.now())
        return Policy(
            mode=self.mode_of(review),
            on_unknown=self.policy.on_unknown,
            on_late=Action(self.policy.on_late.value),
            exemption=exemption,
            remark=remark,
        )

    def passing(self, review: Review) -> Hashable:
        """Return what of the policy may be otherwise when the same object is looked at again."""
        cluster, exemptions = self.cluster, self.policy.exemptions
        labels = (cluster.mode_of(review.namespace), cluster.steer_of(review.namespace))
        if not exemptions and not says_exempt(review):
            return labels
        return (*labels, exemption_of(review, self.policy, now=self.now()))

    def mode_of(self, review: Review) -> Mode:
        """Return the mode: the object's own where it may, the namespace's, the install's."""
        own = mode_label(review.metadata) if self.policy.workloads_may_loosen else None
        return own or self.cluster.mode_of(review.namespace) or self.policy.mode

    def steer(self, review: Review, mode: Mode) -> Steer:
        """Return how hard to steer: as the object's label says, the namespace's, the settings."""
        return (
            steer_label(review.metadata)
            or self.cluster.steer_of(review.namespace)
            or self.steering.default
            or _BY_MODE[mode]
        )
