"""From pod templates to units.

    Template -> one Unit for each container that asks for a GPU

Plain init containers give no unit: they end before training starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from itertools import islice

from admission.errors import RequestError
from admission.share import Share
from admission.values import NO_DOCUMENTS, Documents, Json, Program, Unit
from admission.workloads.annotated import annotated_request, annotated_share
from admission.workloads.claim_shares import claim_share
from admission.workloads.claims import gpu_claims
from admission.workloads.fields import ONE, Amount, mapping, sequence, text
from admission.workloads.resources import CLAIM, GpuRequest, gpu_request
from admission.workloads.shares import share_of

MAX_CONTAINERS = 256
MAX_TEMPLATES = 64
"""Far more than anybody has; they keep the work per request bounded."""
MAX_UNITS = 32
"""GPU containers of a workload that are judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The pods of one role."""

    role: str
    path: str
    """Field path of the pod template: `spec.template`; empty for a Pod."""
    replicas: Amount = ONE
    metadata: Json
    pod: Json
    injected: Json = field(default_factory=dict)
    """Variables that the kind's controller sets in its containers: name -> text."""
    program: Program | None = None
    """What runs on its GPUs, where the object says so outside of its containers."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Field paths of containers that stand elsewhere in the object: `containers[0]` -> path."""
    standing: str | None = None
    """Field path of the pod spec's fields; None: `spec` of the pod template."""
    steering: str | None = None
    """Field path that a nodeSelector is set below; None: the pod spec; empty: only on its pods."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Models of the Hugging Face Hub that are fetched before: folder in its containers -> id."""

    @property
    def pod_path(self) -> str:
        """Return the field path of the pod spec."""
        if self.standing is not None:
            return self.standing
        return f"{self.path}.spec" if self.path else "spec"

    def place(self, key: str, index: int) -> str:
        """Return the field path of a container of the pod."""
        name = f"{key}[{index}]"
        return self.places.get(name, f"{self.pod_path}.{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Container:
    path: str
    body: Json
    restarts: bool
    """An init container with `restartPolicy: Always` runs beside the others."""
    request: GpuRequest | None
    share: Share | None


def template_of(
    body: object,
    path: str,
    *,
    role: str,
    replicas: Amount = ONE,
    injected: Json | None = None,
    steering: str | None = None,
) -> Template:
    """Return the pod template *body* found at *path*.

    Raises:
        RequestError: if it is not a pod template.
    """
    fields = mapping(body, path)
    return Template(
        role=role,
        path=path,
        replicas=replicas,
        metadata=mapping(fields.get("metadata"), f"{path}.metadata"),
        pod=mapping(fields.get("spec"), f"{path}.spec"),
        injected=injected or {},
        steering=steering,
    )


def limited(found: Sized, path: str, *, what: str) -> None:
    """Check that there are not more roles at *path* than any job has.

    Raises:
        RequestError: if there are.
    """
    if len(found) > MAX_TEMPLATES:
        raise RequestError(f"{path}: {len(found)} {what}; at most {MAX_TEMPLATES} are read")


def units_of(
    templates: Iterable[Template], documents: Documents = NO_DOCUMENTS
) -> tuple[Unit, ...]:
    """Return the units of *templates* that start pods, in order.

    *documents* may hold the resource claims that they name.

    One more than `MAX_UNITS` at most: it stands for all the rest.

    Raises:
        RequestError: if containers or their resources are malformed.
    """
    found = (
        unit
        for template in templates
        if template.replicas.number
        for unit in _units(template, documents)
    )
    return tuple(islice(found, MAX_UNITS + 1))


def pod_gpus(requests: Iterable[tuple[bool, bool, int]]) -> int:
    """Return the effective GPU count of a pod from (is init, restarts, count) in start order.

    The larger of any init container (with the restartable ones started before it) and the sum of
    containers and restartable init containers.
    Source: kubernetes KEP-753, "Resources calculation for scheduling and pod admission".
    """
    running = largest = total = 0
    for is_init, restarts, number in requests:
        if not is_init:
            total += number
        elif restarts:
            running += number
            largest = max(largest, running)
        else:
            largest = max(largest, running + number)
    return max(largest, total + running)


def _units(template: Template, documents: Documents) -> Iterator[Unit]:
    claims = gpu_claims(template.pod, template.pod_path, documents)
    starters = tuple(_containers(template, "initContainers", claims, documents))
    mains = tuple(_containers(template, "containers", claims, documents))
    for container in (*(item for item in starters if item.restarts), *mains):
        request = container.request
        if request is None:
            continue
        yield Unit(
            role=template.role,
            template=template.path,
            container=text(container.body.get("name"), f"{container.path}.name"),
            container_path=container.path,
            replicas=template.replicas.number,
            are_replicas_known=template.replicas.is_known,
            gpus=request.count,
            are_gpus_known=request.rendered,
            pod_gpus=pod_gpus(
                (is_init, item.restarts, item.request.count)
                for is_init, items in ((True, starters), (False, mains))
                for item in items
                if item.request is not None and item.request.resource == request.resource
            ),
            gpu_resource=request.resource,
            pod=template.pod,
            pod_metadata=template.metadata,
            container_spec=container.body,
            program=template.program
            or Program(container=container.body, path=container.path, pod=template.pod),
            injected=template.injected,
            steering=template.pod_path if template.steering is None else template.steering,
            models=template.models,
            share=container.share,
        )


def _containers(
    template: Template, key: str, claims: Mapping[str, int], documents: Documents
) -> Iterator[_Container]:
    path = f"{template.pod_path}.{key}"
    items = sequence(template.pod.get(key), path)
    if len(items) > MAX_CONTAINERS:
        raise RequestError(f"{path}: {len(items)} containers; at most {MAX_CONTAINERS} are read")
    for index, item in enumerate(items):
        where = template.place(key, index)
        body = mapping(item, where)
        request, share = _asked(template, body, where, claims, documents, place=(key, index))
        yield _Container(
            path=where,
            body=body,
            restarts=key == "initContainers" and body.get("restartPolicy") == "Always",
            request=request,
            share=share,
        )


def _asked(
    template: Template,
    body: Json,
    where: str,
    claims: Mapping[str, int],
    documents: Documents,
    *,
    place: tuple[str, int],
) -> tuple[GpuRequest | None, Share | None]:
    """Return the GPUs that the container *body* asks for, and what it may use of each."""
    key, index = place
    pod, metadata, name = template.pod, template.metadata, body.get("name")
    request = gpu_request(body, where, claims=claims)
    by_resource = request is not None
    if request is None:
        request = annotated_request(metadata, pod, template.path, key=key, index=index, name=name)
    if request is None:
        return None, None
    if request.resource == CLAIM:
        return request, claim_share(pod, body, where, documents)
    share = share_of(body, request.resource, where) or annotated_share(
        metadata, pod, template.path, key=key, index=index, name=name, whole=by_resource
    )
    return request, share
