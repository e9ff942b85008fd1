"""HyperPodPyTorchJob (sagemaker.amazonaws.com/v1): `spec.replicaSpecs`, a list of named roles.

`hyperpodrun` takes torchrun's flags and, like it, the number of processes from `nprocPerNode`.
Source: aws/sagemaker-hyperpod-cli 011ca927,
`src/sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py`. The operator itself
is not public.
"""

from __future__ import annotations

from admission.values import Documents, Json
from admission.workloads.fields import amount, at, entries, is_unrendered, text
from admission.workloads.kind import Pods
from admission.workloads.units import limited, template_of

_WORDS = ("auto", "gpu", "cpu")


def read(obj: Json, _documents: Documents) -> Pods:
    """Return a template for each entry of `spec.replicaSpecs`."""
    spec = at(obj, "", "spec")
    roles = tuple(entries(spec.get("replicaSpecs"), "spec.replicaSpecs"))
    limited(roles, "spec.replicaSpecs", what="roles")
    variables = _variables(spec.get("nprocPerNode"))
    return Pods(
        templates=tuple(
            template_of(
                role.get("template"),
                f"{where}.template",
                role=text(role.get("name"), f"{where}.name"),
                replicas=amount(role.get("replicas"), f"{where}.replicas"),
                injected=variables,
                steering="",
            )
            for role, where in roles
        ),
        framework="pytorch",
    )


def _variables(processes: object) -> Json:
    """Return the number of processes a pod as torchrun is told it: without, one a GPU."""
    if isinstance(processes, bool) or is_unrendered(processes):
        return {}
    word = "auto" if processes is None else str(processes).strip()
    return {"PET_NPROC_PER_NODE": word} if word in _WORDS or word.isdigit() else {}
