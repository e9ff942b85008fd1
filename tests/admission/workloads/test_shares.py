"""What a container declares of a card is read in the words of each scheduler."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.errors import RequestError
from admission.share import Share
from admission.values import Document, Unit
from admission.workloads import read_workload
from admission.workloads.quantities import whole_quantity
from admission.workloads.resources import CLAIM
from estimator.units import GIB, MIB

GPU = "nvidia.com/gpu"
RESOURCES = "spec.template.spec.containers[0].resources"


def units(
    limits: dict[str, Any],
    *,
    annotations: dict[str, Any] | None = None,
    documents: dict[str, Document] | None = None,
    claims: list[dict[str, Any]] | None = None,
    **pod: Any,
) -> tuple[Unit, ...]:
    """Return the units of a Job of one container with these limits."""
    resources: dict[str, Any] = {"limits": limits}
    if claims is not None:
        resources["claims"] = claims
    pod.setdefault("containers", [{"name": "train", "resources": resources}])
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {"template": {"metadata": {"annotations": annotations or {}}, "spec": pod}},
    }
    return read_workload(job, documents=documents or {}).units


def only(limits: dict[str, Any], **more: Any) -> Unit:
    """Return the one unit."""
    (found,) = units(limits, **more)
    return found


def share(unit: Unit) -> Share:
    """Return what the unit declares."""
    assert unit.share is not None
    assert not unit.share.problem, unit.share.problem
    return unit.share


@pytest.mark.parametrize(
    ("limits", "resource", "cards", "nbytes"),
    [
        ({GPU: 2, "nvidia.com/gpumem": 3000}, GPU, 2, 3000 * MIB),
        ({"nvidia.com/gpumem": "3k"}, GPU, 1, 3000 * MIB),
        ({"volcano.sh/vgpu-number": 4, "volcano.sh/vgpu-memory": 16384}, "", 4, 16384 * MIB),
        ({"volcano.sh/vgpu-memory": "1024"}, "volcano.sh/vgpu-number", 1, 1024 * MIB),
        ({"volcano.sh/gpu-memory": 1024}, "volcano.sh/gpu-memory", 1, 1024 * MIB),
        ({"koordinator.sh/gpu-memory": "16Gi"}, "koordinator.sh/gpu", 1, 16 * GIB),
        (
            {"koordinator.sh/gpu.shared": 2, "koordinator.sh/gpu-memory": "16Gi"},
            "koordinator.sh/gpu",
            2,
            8 * GIB,
        ),
        ({"aliyun.com/gpu-mem": 3}, "aliyun.com/gpu-mem", 1, 3 * GIB),
        ({"aliyun.com/gpu-mem": 16276}, "aliyun.com/gpu-mem", 1, 16276 * MIB),
        (
            {"tencent.com/vcuda-core": 50, "tencent.com/vcuda-memory": 30},
            "tencent.com/vcuda-core",
            1,
            30 * 256 * MIB,
        ),
    ],
)
def test_memory_is_read_in_each_schedulers_unit(
    limits: dict[str, Any], resource: str, cards: int, nbytes: int
) -> None:
    """MiB, GiB, 256 MiB or a quantity; of each card."""
    unit = only(limits)

    assert unit.gpu_resource == (resource or "volcano.sh/vgpu-number")
    assert (unit.gpus, unit.pod_gpus) == (cards, cards)
    assert (share(unit).nbytes, share(unit).part) == (nbytes, None)


@pytest.mark.parametrize(
    ("limits", "part"),
    [
        ({GPU: 1, "nvidia.com/gpumem-percentage": 50}, Fraction(1, 2)),
        ({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory-percentage": 25}, Fraction(1, 4)),
        ({"koordinator.sh/gpu": 30}, Fraction(3, 10)),
        ({"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 60}, Fraction(3, 5)),
        (
            {"koordinator.sh/gpu.shared": 2, "koordinator.sh/gpu-memory-ratio": 100},
            Fraction(1, 2),
        ),
    ],
)
def test_percentage_is_a_part_of_each_card(limits: dict[str, Any], part: Fraction) -> None:
    """What it comes to depends on the card."""
    assert (share(only(limits)).nbytes, share(only(limits)).part) == (None, part)


@pytest.mark.parametrize(
    ("limits", "cards"),
    [
        ({GPU: 1}, 1),
        ({GPU: 1, "nvidia.com/gpumem": 0}, 1),
        ({GPU: 1, "nvidia.com/gpumem-percentage": 0}, 1),
        ({GPU: 1, "nvidia.com/gpumem-percentage": 100}, 1),
        ({"nvidia.com/gpucores": 30}, 1),
        ({"volcano.sh/vgpu-number": 2}, 2),
        ({"koordinator.sh/gpu": 200}, 2),
        ({"koordinator.sh/gpu-memory-ratio": "400"}, 4),
        ({"tencent.com/vcuda-core": 200, "tencent.com/vcuda-memory": 60}, 2),
    ],
)
def test_whole_cards_are_no_share(limits: dict[str, Any], cards: int) -> None:
    """Zero is no declaration to HAMi; a hundred percent is the card."""
    unit = only(limits)

    assert unit.share is None
    assert unit.gpus == cards


def test_memory_counts_before_percentage_to_hami_and_after_it_to_volcano() -> None:
    """Each scheduler's own order."""
    hami = only({GPU: 1, "nvidia.com/gpumem": 100, "nvidia.com/gpumem-percentage": 50})
    volcano = only({"volcano.sh/vgpu-memory": 100, "volcano.sh/vgpu-memory-percentage": 50})

    assert share(hami).nbytes == 100 * MIB
    assert share(volcano).part == Fraction(1, 2)


@pytest.mark.parametrize(
    "limits",
    [
        {GPU: 1, "nvidia.com/gpumem": "lots"},
        {GPU: 1, "nvidia.com/gpumem": -1},
        {GPU: 1, "nvidia.com/gpumem": "1.5"},
        {GPU: 1, "nvidia.com/gpumem": "$MEMORY"},
        {GPU: 1, "nvidia.com/gpumem-percentage": 120},
        {"volcano.sh/vgpu-memory": []},
        {"koordinator.sh/gpu-memory": "0"},
        {"koordinator.sh/gpu-memory-ratio": "x"},
        {"aliyun.com/gpu-mem": "9" * 40},
        {"tencent.com/vcuda-core": 10, "tencent.com/vcuda-memory": True},
    ],
)
def test_declaration_that_cannot_be_read_is_named(limits: dict[str, Any]) -> None:
    """The finding says which one, and where."""
    unit = only(limits)
    name = list(limits)[-1]

    assert unit.share is not None
    assert unit.share.problem.startswith(f"{name}: ")
    assert unit.share.path == RESOURCES


def test_fraction_of_kai_gives_the_first_container_a_card() -> None:
    """There is no resource in the container: the annotation is all there is."""
    containers = [{"name": "a"}, {"name": "b"}]
    (found,) = units({}, annotations={"gpu-fraction": "0.5"}, containers=containers)

    assert (found.container, found.gpu_resource, found.gpus) == ("a", GPU, 1)
    assert share(found).part == Fraction(1, 2)
    assert share(found).path == "spec.template.metadata.annotations[gpu-fraction]"


def test_fraction_of_kai_goes_to_the_container_that_is_named() -> None:
    """On as many cards as are asked for."""
    annotations = {
        "gpu-memory": "4000",
        "gpu-fraction-container-name": "b",
        "gpu-fraction-num-devices": "2",
    }
    containers = [{"name": "a"}, {"name": "b"}]
    (found,) = units({}, annotations=annotations, containers=containers)

    assert (found.container, found.gpus) == ("b", 2)
    assert share(found).nbytes == 4000 * MIB


@pytest.mark.parametrize(
    ("annotations", "limits"),
    [
        ({"gpu-fraction": "1.5"}, {}),
        ({"gpu-fraction": "0"}, {}),
        ({"gpu-fraction": "half"}, {}),
        ({"gpu-fraction": "1e-99999999"}, {}),
        ({"gpu-memory": "8Gi"}, {}),
        ({"gpu-memory": "0"}, {}),
        ({"gpu-memory": "{{memory}}"}, {}),
        ({"gpu-fraction": "0.5", "gpu-memory": "100"}, {}),
        ({"gpu-fraction": "0.5"}, {GPU: 1}),
    ],
)
def test_annotation_that_kai_refuses_is_named(
    annotations: dict[str, str], limits: dict[str, Any]
) -> None:
    """Nothing is guessed of it."""
    found = only(limits, annotations=annotations, schedulerName="kai-scheduler")

    assert found.share is not None
    assert found.share.problem.startswith("gpu-")


def test_annotation_of_kai_says_nothing_to_another_scheduler() -> None:
    """A card that is asked for by its resource is had whole."""
    assert only({GPU: 1}, annotations={"gpu-fraction": "0.5"}).share is None


def claimed(template: object, **more: Any) -> Unit:
    """Return the unit of a pod with a claim of this template; None: it was not fetched."""
    document = Document(files={"": orjson.dumps(template).decode()})
    documents = {"resourceclaimtemplate/gpu": document} if template is not None else {}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    return only({}, claims=[{"name": "gpu", **more}], resourceClaims=claims, documents=documents)


def template(*requests: dict[str, Any]) -> dict[str, Any]:
    """Return a ResourceClaimTemplate."""
    return {"spec": {"spec": {"devices": {"requests": list(requests)}}}}


def exactly(name: str = "gpu", device_class: str = "gpu.nvidia.com", **more: Any) -> dict[str, Any]:
    """Return a request for exactly one kind of device."""
    return {"name": name, "exactly": {"deviceClassName": device_class, **more}}


def capacity(amount: object) -> dict[str, Any]:
    """Return a request for memory."""
    return {"requests": {"gpu.nvidia.com/memory": amount}}


def test_capacity_of_a_claim_is_the_least_that_the_device_has() -> None:
    """A device that is not shared is handed out whole."""
    unit = claimed(template(exactly(capacity=capacity("4Gi"))))

    assert unit.gpu_resource == CLAIM
    assert (share(unit).nbytes, share(unit).is_floor) == (4 * GIB, True)


def test_smallest_of_several_devices_counts() -> None:
    """The job may land on any of them; a container may take one request of the claim only."""
    several = template(
        exactly("a", capacity=capacity("8Gi")), exactly("b", capacity=capacity("4Gi"))
    )

    assert share(claimed(several)).nbytes == 4 * GIB
    assert share(claimed(several, request="a")).nbytes == 8 * GIB


def test_alternatives_of_a_claim_are_all_looked_at() -> None:
    """Whichever is free is taken."""
    choices = [
        {"name": "big", "deviceClassName": "gpu.nvidia.com", "capacity": capacity("40Gi")},
        {"name": "small", "deviceClassName": "gpu.nvidia.com", "capacity": capacity("10Gi")},
    ]

    assert share(claimed(template({"name": "gpu", "firstAvailable": choices}))).nbytes == 10 * GIB


def test_profile_of_a_claim_is_a_slice() -> None:
    """The selector of a MIG device names it."""
    selector = {"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"}}
    unit = claimed(template(exactly(device_class="mig.nvidia.com", selectors=[selector])))

    assert share(unit).profile == "1g.10gb"


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "resourceclaimtemplate gpu, which says what it asks for, was not read"),
        (template(exactly(device_class="mig.nvidia.com")), "slices differ"),
        (template(exactly(device_class="gpu.amd.com")), "devices of gpu.amd.com are not modelled"),
        (template(exactly(capacity=capacity("many"))), "is not an amount of memory"),
    ],
)
def test_claim_that_does_not_say_is_named(found: object, reason: str) -> None:
    """A slice could be any, and a template that nobody read too."""
    unit = claimed(found)

    assert unit.share is not None
    assert reason in unit.share.problem


def test_claim_that_was_not_fetched_is_wanted() -> None:
    """Whoever reads the workload again brings it."""
    unit = claimed(None)

    assert unit.share is not None
    assert unit.share.wanted == "resourceclaimtemplate/gpu"


@pytest.mark.parametrize(
    ("text", "number"),
    [("16Gi", 16 * GIB), (3, 3), ("1e3", 1000), ("2000m", 2), ("0.5Ki", 512), ("1.5", None)],
)
def test_quantities_are_those_of_kubernetes(text: object, number: int | None) -> None:
    """Binary and decimal suffixes, exponents, thousandths; whole in the end."""
    assert whole_quantity(text) == number


NAMES = st.sampled_from(
    [
        GPU,
        "nvidia.com/gpumem",
        "nvidia.com/gpumem-percentage",
        "nvidia.com/gpucores",
        "volcano.sh/vgpu-number",
        "volcano.sh/vgpu-memory",
        "volcano.sh/gpu-memory",
        "koordinator.sh/gpu",
        "koordinator.sh/gpu.shared",
        "koordinator.sh/gpu-memory",
        "koordinator.sh/gpu-memory-ratio",
        "aliyun.com/gpu-mem",
        "tencent.com/vcuda-core",
        "tencent.com/vcuda-memory",
    ]
)
VALUES = st.one_of(st.integers(), st.text(max_size=20), st.none(), st.booleans(), st.floats())
ANNOTATIONS = st.dictionaries(
    st.sampled_from(
        ["gpu-fraction", "gpu-memory", "gpu-fraction-container-name", "gpu-fraction-num-devices"]
    ),
    VALUES,
)


@given(limits=st.dictionaries(NAMES, VALUES, max_size=5), annotations=ANNOTATIONS)
def test_no_declaration_crashes(limits: dict[str, Any], annotations: dict[str, Any]) -> None:
    """It is read, is named, or is no number of GPUs at all, which the request's sender is told."""
    try:
        found = units(limits, annotations=annotations)
    except RequestError:
        return

    for unit in found:
        assert unit.gpus >= 1
        assert unit.share is None or unit.share.text
