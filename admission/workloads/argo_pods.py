"""The pod that one Argo template becomes.

workflow spec, template with its parameters filled in -> Template

Source: argoproj/argo-workflows f016ad89, `workflow/controller/workflowpod.go`
(`createWorkflowPod`), `workflow/util/util.go` (`ApplyPodSpecPatch`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from admission.codes import ReasonCode
from admission.values import Finding, Json
from admission.workloads.argo_values import Scope, filled
from admission.workloads.fields import ONE, Amount, entries, mapping, sequence, text
from admission.workloads.idle import SHELLS
from admission.workloads.patches import patched
from admission.workloads.units import Template
from estimator.documents import read_document
from estimator.errors import SpecError

_MAIN = "main"
_OVERRIDING = ("nodeSelector", "affinity", "tolerations", "schedulerName", "priorityClassName")
"""A template's own take the place of the workflow's."""


def pod_of(
    template: Json, where: str, spec: Json, *, role: str, scope: Scope, replicas: Amount = ONE
) -> tuple[Template | None, tuple[Finding, ...]]:
    """Return the pod of *template* found at *where*; None if it starts no pod of its own.

    Raises:
        RequestError: if it is malformed.
    """
    containers, places = _containers(template, where)
    if not containers:
        return None, ()
    for index, (sidecar, place) in enumerate(
        entries(template.get("sidecars"), f"{where}.sidecars"), start=len(containers)
    ):
        containers.append(sidecar)
        places[f"containers[{index}]"] = place
    pod: dict[str, Any] = {
        "containers": containers,
        "initContainers": list(sequence(template.get("initContainers"), f"{where}.initContainers")),
        "volumes": list(_volumes(template, where, spec)),
    }
    for key in _OVERRIDING:
        value = template.get(key) if template.get(key) is not None else spec.get(key)
        if value is not None:
            pod[key] = filled(value, scope)
    if template.get("resourceClaims") is not None:
        pod["resourceClaims"] = template["resourceClaims"]
    problems = []
    for holder, path in ((spec, "podSpecPatch of the workflow"), (template, where)):
        patch, problem = _patch(filled(holder.get("podSpecPatch"), scope), path)
        pod = patched(pod, patch)
        problems += problem
    metadata = patched(
        mapping(spec.get("podMetadata"), "spec.podMetadata"),
        mapping(template.get("metadata"), f"{where}.metadata"),
    )
    found = Template(
        role=role,
        path=where,
        replicas=replicas,
        metadata=filled(metadata, scope),
        pod=pod,
        places=places,
        standing=where,
        steering=where,
    )
    return found, tuple(problems)


def _containers(template: Json, where: str) -> tuple[list[Json], dict[str, str]]:
    """Return the containers that do the work, and where they stand."""
    if template.get("container") is not None:
        body = mapping(template.get("container"), f"{where}.container")
        return [{"name": _MAIN, **body}], {"containers[0]": f"{where}.container"}
    if template.get("script") is not None:
        body = mapping(template.get("script"), f"{where}.script")
        return [_script(body, f"{where}.script")], {"containers[0]": f"{where}.script"}
    group = mapping(template.get("containerSet"), f"{where}.containerSet")
    found = tuple(entries(group.get("containers"), f"{where}.containerSet.containers"))
    places = {f"containers[{index}]": place for index, (_, place) in enumerate(found)}
    return [body for body, _ in found], places


def _script(body: Json, where: str) -> Json:
    """Return a script as a container that runs its source."""
    command = [str(word) for word in sequence(body.get("command"), f"{where}.command")]
    source = text(body.get("source"), f"{where}.source")
    name = command[0].rpartition("/")[2] if command else ""
    runs_text = name in SHELLS or name.startswith("python")
    return {
        "name": _MAIN,
        **{key: value for key, value in body.items() if key != "source"},
        "command": [*command, *(["-c", source] if runs_text else [])],
    }


def _volumes(template: Json, where: str, spec: Json) -> Iterator[Json]:
    for claim, _ in entries(spec.get("volumeClaimTemplates"), "spec.volumeClaimTemplates"):
        name = mapping(claim.get("metadata"), "spec.volumeClaimTemplates").get("name")
        yield {"name": name, "persistentVolumeClaim": {}}
    for holder, path in ((spec, "spec"), (template, where)):
        for volume, _ in entries(holder.get("volumes"), f"{path}.volumes"):
            yield volume


def _patch(patch: object, where: str) -> tuple[Json, list[Finding]]:
    """Return what *patch* changes of the pod spec, or why that cannot be read."""
    path = f"{where}.podSpecPatch" if where.startswith("spec") else where
    document = text(patch, path)
    if not document.strip():
        return {}, []
    try:
        return mapping(read_document(document), path), []
    except SpecError as error:
        reason = f"the patch cannot be read: {error.problems[0].message:.200}"
        return {}, [Finding(code=ReasonCode.TEMPLATE, path=path, reason=reason)]
