"""What the training operator sets in the containers of each of its kinds.

spec, role, roles -> variables

Ranks and addresses are left out: they differ between pods and change no need.
Source: kubeflow/training-operator `pkg/controller.v1/{pytorch,tensorflow,jax,paddlepaddle}` v1.9.0,
`mxnet` v1.7.0.
"""

from __future__ import annotations

from admission.values import Json
from admission.workloads.fields import ONE, Amount, amount, is_unrendered, mapping
from admission.workloads.replicas import ReplicaKind, Roles, named, numbers, together

_WORDS = ("auto", "gpu", "cpu")


def pytorch_variables(spec: Json, _role: str, roles: Roles) -> Json:
    """Return torchrun's own variables and, with a Master, the size of the group.

    Without `nprocPerNode` torchrun starts one process a GPU, and the size counts one a pod.
    """
    pods = together(roles)
    elastic = mapping(spec.get("elasticPolicy"), "spec.elasticPolicy")
    processes = spec.get("nprocPerNode")
    if processes is None and elastic:
        processes = elastic.get("nProcPerNode")
    elif processes is None:
        processes = "auto"
    found = _processes(processes)
    if elastic:
        found |= _range(elastic, named(roles, "worker") or ONE)
    else:
        found |= numbers(PET_NNODES=pods)
    if named(roles, "master") is not None:
        each = found.get("PET_NPROC_PER_NODE", "1")
        per_pod = int(each) if each.isdigit() else 1
        found |= numbers(WORLD_SIZE=pods.times(Amount(number=per_pod)))
    return found


def tensorflow_variables(_spec: Json, role: str, roles: Roles) -> Json:
    """Return TF_CONFIG: who is in the cluster. A job of one pod has none."""
    if together(roles).number <= 1 or not together(roles).is_known:
        return {}
    cluster = ", ".join(
        f'"{name.lower()}": [{", ".join(_hosts(name.lower(), found.number))}]'
        for name, found in roles.items()
        if name.lower() not in ("eval", "evaluator")
    )
    task = f'"task": {{"type": "{role.lower()}", "index": 0}}'
    return {"TF_CONFIG": f'{{"cluster": {{{cluster}}}, {task}}}'}


def jax_variables(_spec: Json, _role: str, roles: Roles) -> Json:
    """Return how many processes there are: one a pod."""
    return numbers(NUM_PROCESSES=together(roles))


def mxnet_variables(_spec: Json, role: str, roles: Roles) -> Json:
    """Return the sizes of the parameter server's groups."""
    found = numbers(
        DMLC_NUM_WORKER=named(roles, "worker") or Amount(number=0),
        DMLC_NUM_SERVER=named(roles, "server") or Amount(number=0),
    )
    return {**found, "DMLC_ROLE": role.lower(), "DMLC_USE_KUBERNETES": "1"}


def paddle_variables(_spec: Json, _role: str, roles: Roles) -> Json:
    """Return how many nodes there are."""
    return numbers(PADDLE_NNODES=together(roles))


PYTORCHJOB = ReplicaKind(
    key="pytorchReplicaSpecs", framework="pytorch", variables=pytorch_variables
)
TFJOB = ReplicaKind(key="tfReplicaSpecs", framework="tensorflow", variables=tensorflow_variables)
JAXJOB = ReplicaKind(key="jaxReplicaSpecs", framework="jax", variables=jax_variables)
MXJOB = ReplicaKind(key="mxReplicaSpecs", framework="mxnet", variables=mxnet_variables)
XGBOOSTJOB = ReplicaKind(key="xgbReplicaSpecs", unmodelled="XGBoost")
PADDLEJOB = ReplicaKind(
    key="paddleReplicaSpecs", variables=paddle_variables, unmodelled="PaddlePaddle"
)

MAX_HOSTS = 64
"""Pods of one role that TF_CONFIG lists here. Nobody's need depends on more."""


def _hosts(role: str, number: int) -> list[str]:
    return [f'"{role}-{index}:2222"' for index in range(min(number, MAX_HOSTS))]


def _processes(value: object) -> dict[str, str]:
    """Return the processes a pod as torchrun is told them; what is not filled in is left out."""
    if isinstance(value, bool) or value is None or is_unrendered(value):
        return {}
    text = str(value).strip()
    return {"PET_NPROC_PER_NODE": text} if text in _WORDS or text.isdigit() else {}


def _range(elastic: Json, workers: Amount) -> dict[str, str]:
    """Return the range of nodes of an elastic job; one end stands for both."""
    ends = [
        amount(elastic.get(key), f"spec.elasticPolicy.{key}")
        for key in ("minReplicas", "maxReplicas")
        if elastic.get(key) is not None
    ] or [workers]
    if not ends[0].is_known:
        return {}
    least, most = ends[0], ends[-1]
    if most.is_known and most == least:
        return {"PET_NNODES": str(least.number)}
    return {"PET_NNODES": f"{least.number}:{most.number if most.is_known else least.number}"}
