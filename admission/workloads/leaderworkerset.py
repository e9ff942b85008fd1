"""LeaderWorkerSet (leaderworkerset.x-k8s.io): groups of one leader and its workers.

Mostly serving, which is told by the command; one that trains is judged.
Source: kubernetes-sigs/lws v0.9.0, `api/leaderworkerset/v1/leaderworkerset_types.go`,
`pkg/utils/pod/pod_utils.go` (`AddLWSVariables`).
"""

from __future__ import annotations

from admission.values import Documents, Json
from admission.workloads.fields import Amount, amount, at
from admission.workloads.kind import Pods
from admission.workloads.replicas import numbers
from admission.workloads.units import Template, template_of

_PATH = "spec.leaderWorkerTemplate"


def read(obj: Json, _documents: Documents) -> Pods:
    """Return the templates of leader and worker; without a leader's, workers are all alike."""
    spec = at(obj, "", "spec")
    groups = amount(spec.get("replicas"), "spec.replicas")
    both = at(spec, "spec", "leaderWorkerTemplate")
    size = amount(both.get("size"), f"{_PATH}.size")
    variables = numbers(LWS_GROUP_SIZE=size)
    found: list[Template] = []
    workers = size
    if both.get("leaderTemplate") is not None:
        workers = Amount(number=size.number - 1 if size.is_known else 1, is_known=size.is_known)
        found.append(
            template_of(
                both.get("leaderTemplate"),
                f"{_PATH}.leaderTemplate",
                role="leader",
                replicas=groups,
                injected=variables,
            )
        )
    found.append(
        template_of(
            both.get("workerTemplate"),
            f"{_PATH}.workerTemplate",
            role="worker",
            replicas=groups.times(Amount(number=max(0, workers.number), is_known=workers.is_known)),
            injected=variables,
        )
    )
    return Pods(templates=tuple(found))
