"""How many devices a pod has of its node, as the scheduler counts them.

pod spec -> (resource, number)
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter

from admission.errors import RequestError
from admission.values import Json
from admission.workloads.fields import part, parts
from admission.workloads.resources import quantity


def devices_of(spec: Json) -> tuple[tuple[str, int], ...]:
    """Return what the scheduler counts of a pod's devices: the most that it has at one time.

    Source: kubernetes v1.36.3 `staging/src/k8s.io/component-helpers/resource/helpers.go`
    (`PodRequests`). Not modelled: resources of the whole pod, which have no devices.
    """
    together: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for container in parts(spec.get("initContainers")):
        asked = _devices(container)
        if container.get("restartPolicy") == "Always":
            together += asked
            most |= together
        else:
            most |= together + asked
    for container in parts(spec.get("containers")):
        together += _devices(container)
    return tuple(sorted((most | together).items()))


def _devices(container: Json) -> Counter[str]:
    resources = part(container.get("resources"))
    amounts = {**part(resources.get("limits")), **part(resources.get("requests"))}
    found: Counter[str] = Counter()
    for name, amount in amounts.items():
        if "/" in name:
            with contextlib.suppress(RequestError):
                found[sys.intern(name)] = quantity(amount, name)
    return found
