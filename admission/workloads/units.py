"""From pod templates to units.

    Template -> one Unit for each container that asks for a GPU

Plain init containers give no unit: they end before training starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from admission.errors import RequestError
from admission.values import Json, Unit
from admission.workloads.fields import mapping, sequence, text
from admission.workloads.resources import GpuRequest, gpu_claims, gpu_request

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
    replicas: int
    metadata: Json
    pod: Json

    @property
    def pod_path(self) -> str:
        """Return the field path of the pod spec."""
        return f"{self.path}.spec" if self.path else "spec"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Container:
    path: str
    body: Json
    restarts: bool
    """An init container with `restartPolicy: Always` runs beside the others."""
    request: GpuRequest | None


def template_of(body: object, path: str, *, role: str, replicas: int) -> Template:
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
    )


def units_of(templates: Iterable[Template]) -> tuple[Unit, ...]:
    """Return the units of *templates* that start pods, in order.

    One more than `MAX_UNITS` at most: it stands for all the rest.

    Raises:
        RequestError: if containers or their resources are malformed.
    """
    found = (unit for template in templates if template.replicas for unit in _units(template))
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


def _units(template: Template) -> Iterator[Unit]:
    claims = gpu_claims(template.pod, template.pod_path)
    starters = tuple(_containers(template, "initContainers", claims))
    mains = tuple(_containers(template, "containers", claims))
    for container in (*(item for item in starters if item.restarts), *mains):
        request = container.request
        if request is None:
            continue
        yield Unit(
            role=template.role,
            template=template.path,
            container=text(container.body.get("name"), f"{container.path}.name"),
            container_path=container.path,
            replicas=template.replicas,
            gpus=request.count,
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
        )


def _containers(template: Template, key: str, claims: frozenset[str]) -> Iterator[_Container]:
    path = f"{template.pod_path}.{key}"
    items = sequence(template.pod.get(key), path)
    if len(items) > MAX_CONTAINERS:
        raise RequestError(f"{path}: {len(items)} containers; at most {MAX_CONTAINERS} are read")
    for index, item in enumerate(items):
        where = f"{path}[{index}]"
        body = mapping(item, where)
        yield _Container(
            path=where,
            body=body,
            restarts=key == "initContainers" and body.get("restartPolicy") == "Always",
            request=gpu_request(body, where, claims=claims),
        )
