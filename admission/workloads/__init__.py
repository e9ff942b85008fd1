"""Kubernetes objects, read one kind a file.

    object -> Workload(units)

A kind is added by a file with `templates` and `has_started` and a line in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from admission.codes import ReasonCode
from admission.values import Json, Workload, WorkloadRef
from admission.workloads import cronjob, job, pod, pytorchjob
from admission.workloads.fields import mapping, sequence, text
from admission.workloads.units import Template, units_of

__all__ = ["KINDS", "Kind", "read_workload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How one kind is read."""

    templates: Callable[[Json], tuple[Template, ...]]
    has_started: Callable[[Json], bool]


KINDS: Mapping[tuple[str, str], Kind] = {
    ("", "Pod"): Kind(templates=pod.templates, has_started=pod.has_started),
    ("batch", "Job"): Kind(templates=job.templates, has_started=job.has_started),
    ("batch", "CronJob"): Kind(templates=cronjob.templates, has_started=cronjob.has_started),
    ("kubeflow.org", "PyTorchJob"): Kind(
        templates=pytorchjob.templates, has_started=pytorchjob.has_started
    ),
}
"""(API group, kind) -> its reader."""


def read_workload(
    obj: object, *, api_version: str | None = None, kind: str | None = None
) -> Workload:
    """Return the workload in *obj*; *api_version* and *kind* stand in where the object has none.

    A kind that is not in `KINDS`, or one that asks for no GPU, has `skip` set.

    Raises:
        RequestError: if the object is malformed; the message names the field path.
    """
    fields = mapping(obj, "")
    metadata = mapping(fields.get("metadata"), "metadata")
    ref = WorkloadRef(
        api_version=text(fields.get("apiVersion"), "apiVersion") or api_version or "",
        kind=text(fields.get("kind"), "kind") or kind or "",
        namespace=text(metadata.get("namespace"), "metadata.namespace"),
        name=text(metadata.get("name"), "metadata.name"),
    )
    mapping(metadata.get("annotations"), "metadata.annotations")
    group = ref.api_version.rpartition("/")[0]
    reader = KINDS.get((group, ref.kind))
    units = units_of(reader.templates(fields)) if reader else ()
    skip = None if units else ReasonCode.NO_GPU if reader else ReasonCode.KIND
    return Workload(
        ref=ref,
        units=units,
        metadata=metadata,
        controlled=_is_controlled(metadata),
        started=reader.has_started(fields) if reader else False,
        skip=skip,
    )


def _is_controlled(metadata: Json) -> bool:
    path = "metadata.ownerReferences"
    owners = sequence(metadata.get("ownerReferences"), path)
    return any(
        mapping(owner, f"{path}[{index}]").get("controller") is True
        for index, owner in enumerate(owners)
    )
