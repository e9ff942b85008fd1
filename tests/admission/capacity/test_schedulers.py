"""Nodes whose cards a scheduler shares offer what it wrote down, and units what they declare."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from admission.capacity.classes import classes_of
from admission.capacity.eligibility import reach_of
from admission.capacity.named import declared_class
from admission.codes import Verdict
from admission.decision import Cause, class_verdict
from admission.share import Share
from admission.values import NodeClass, Unit
from admission.workloads.resources import CLAIM
from estimator.catalog import gpu_named, resolve_device
from estimator.units import GIB, MIB
from tests.builders import GPU, estimate, gpu_labels, node, unit

T4 = gpu_named("t4")
assert T4 is not None
USABLE = T4.usable_mib * MIB
GPUMEM = Share(
    text="nvidia.com/gpumem: 3000",
    key="nvidia.com/gpumem",
    path="spec",
    nbytes=3000 * MIB,
    unit_bytes=MIB,
)


def hami(*cards: str, split: int = 10, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a node whose cards HAMi registered, as `type,memory` each."""
    found = node(labels=labels or {}, resources={GPU: str(split * len(cards))})
    devices = (f"GPU-{index},{split},{card},0,true" for index, card in enumerate(cards))
    fields = (text.replace(";", ",100,") for text in devices)
    found["metadata"]["annotations"] = {"hami.io/node-nvidia-register": ":".join(fields) + ":"}
    return found


def only(found: dict[str, Any]) -> NodeClass:
    """Return the one class of a node."""
    (one,) = classes_of([found])
    return one


def declaring(share: Share, *, resource: str = GPU, gpus: int = 1) -> Unit:
    """Return a unit that declares *share*."""
    return replace(unit(gpus=gpus, gpu_resource=resource), share=share)


def budget(share: Share, *classes: NodeClass, resource: str = GPU) -> int | None:
    """Return what the unit may use of the first class it can reach."""
    device = reach_of(declaring(share, resource=resource), classes).reachable[0].device
    return device.budget_bytes if device else None


def test_hami_counts_cards_not_shares() -> None:
    """Ten shares of a card are shown; a pod gets each of its GPUs on another card."""
    found = only(hami(*["15360;NVIDIA-Tesla T4"] * 4))

    assert (found.gpus_per_node, found.sharing, found.name) == (4, "hami", "NVIDIA-Tesla-T4")
    assert found.device == resolve_device("t4")


def test_registration_as_json_is_read_too() -> None:
    """Newer versions of HAMi write it so."""
    found = hami("15360;NVIDIA-Tesla T4")
    found["metadata"]["annotations"]["hami.io/node-nvidia-register"] = (
        '[{"id":"GPU-0","count":10,"devmem":40960,"type":"NVIDIA-NVIDIA A100-SXM4-40GB"}]'
    )

    assert only(found).device == resolve_device("a100-sxm4-40gb")


def test_cards_of_several_kinds_under_hami_are_an_unknown_class() -> None:
    """A pod may land on either."""
    found = only(hami("15360;NVIDIA-Tesla T4", "40960;NVIDIA-NVIDIA A100-SXM4-40GB"))

    assert found.device is None
    assert "several kinds: NVIDIA-Tesla-T4 and NVIDIA-A100-SXM4-40GB" in str(found.unknown_reason)


def test_labels_of_gpu_feature_discovery_count_before_the_registration() -> None:
    """They have the driver's version and the exact total."""
    found = only(hami("15360;NVIDIA-Tesla T4", labels=gpu_labels(memory="15109", count=1)))

    assert found.device is not None
    assert found.device.total_bytes == 15109 * MIB


def test_declaration_is_the_budget_where_it_is_smaller() -> None:
    """And the card where the card is."""
    where = only(hami("15360;NVIDIA-Tesla T4"))
    large = replace(GPUMEM, nbytes=40 * GIB)

    assert budget(GPUMEM, where) == 3000 * MIB
    assert budget(large, where) == USABLE


def test_percentage_is_of_each_class_of_its_own() -> None:
    """Half of a T4 and half of an A100."""
    half = replace(GPUMEM, nbytes=None, part=Fraction(1, 2))
    classes = (
        only(hami("15360;NVIDIA-Tesla T4")),
        only(hami("40960;NVIDIA-NVIDIA A100-SXM4-40GB")),
    )

    assert [budget(half, where) for where in classes] == [7680 * MIB, 20480 * MIB]


def test_percentage_of_overcommitted_memory_is_of_what_hami_counts() -> None:
    """`deviceMemoryScaling: 2` makes half of a card the whole of it."""
    half = replace(GPUMEM, nbytes=None, part=Fraction(1, 2))
    where = only(hami("30720;NVIDIA-Tesla T4"))

    assert where.divided_bytes == 30720 * MIB
    assert budget(half, where) == USABLE


def test_fraction_of_kai_is_of_the_card_in_steps_of_a_hundred() -> None:
    """15,360 MiB count as 15,300."""
    half = Share(text="gpu-fraction: 0.5", key="gpu-fraction", path="", part=Fraction(1, 2))

    assert budget(half, only(node())) == 7650 * MIB


def test_declaration_on_a_slice_is_the_smaller_of_the_two() -> None:
    """MIG keeps its own bound."""
    labels = gpu_labels(
        product="NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", memory="9728", compute=(8, 0), count=7
    )
    where = only(node(labels=labels, resources={GPU: "7"}))

    assert budget(replace(GPUMEM, nbytes=20 * GIB), where) == 9728 * MIB


def test_declaration_counts_on_a_named_card_too() -> None:
    """`--gpu t4` gives no more than is declared."""
    assert budget(GPUMEM, declared_class(resolve_device("t4"))) == 3000 * MIB


@pytest.mark.parametrize(
    ("resource", "resources", "labels", "cards"),
    [
        (
            "volcano.sh/gpu-memory",
            {"volcano.sh/gpu-memory": "30720", "volcano.sh/gpu-number": "2"},
            {"node.kubernetes.io/instance-type": "g4dn.12xlarge"},
            2,
        ),
        (
            "koordinator.sh/gpu",
            {"koordinator.sh/gpu": "200", "koordinator.sh/gpu-memory": "30Gi"},
            {"node.koordinator.sh/gpu-model": "Tesla-T4"},
            2,
        ),
        (
            "aliyun.com/gpu-mem",
            {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"},
            {"aliyun.accelerator/nvidia_name": "Tesla-T4"},
            2,
        ),
        (
            "tencent.com/vcuda-core",
            {"tencent.com/vcuda-core": "200", "tencent.com/vcuda-memory": "120"},
            gpu_labels(count=2),
            2,
        ),
    ],
)
def test_resource_of_a_scheduler_is_a_class_of_its_own(
    resource: str, resources: dict[str, str], labels: dict[str, str], cards: int
) -> None:
    """A pod that asks for it goes there, and one that asks for nvidia.com/gpu does not."""
    (found,) = classes_of([node(labels=labels, resources=resources)])

    assert (found.gpu_resource, found.gpus_per_node) == (resource, cards)
    assert found.device is not None, found.unknown_reason
    assert budget(GPUMEM, found, resource=resource) == 3000 * MIB
    assert not reach_of(unit(), [found]).reachable


def test_cards_of_volcano_are_those_it_registered() -> None:
    """The resource counts shares; the annotation has cards."""
    found = node(labels={}, resources={"volcano.sh/vgpu-number": "20"})
    text = "GPU-0,10,32768,NVIDIA-Tesla V100-SXM2-32GB,true,hami-core:"
    found["metadata"]["annotations"] = {"volcano.sh/node-vgpu-register": text}

    where = only(found)

    assert (where.gpu_resource, where.gpus_per_node) == ("volcano.sh/vgpu-number", 1)
    assert where.device == resolve_device("v100-sxm2-32gb")


def test_profile_of_a_claim_is_a_slice_of_each_card() -> None:
    """A card without such a profile is an unknown class."""
    share = Share(text="profile 1g.10gb", key="", path="", profile="1g.10gb")
    a100 = gpu_labels(product="NVIDIA-A100-SXM4-80GB", memory="81920", compute=(8, 0))
    classes = classes_of([node("a", labels=a100, resources={}), node("b", resources={})])

    large, small = reach_of(declaring(share, resource=CLAIM), classes).reachable

    assert large.device == resolve_device("a100-sxm4-80gb/1g.10gb")
    assert (small.device, small.unknown_reason) == (None, "t4 has no MIG profile 1g.10gb")


@pytest.mark.parametrize(
    ("is_floor", "least", "verdict", "cause"),
    [
        (False, 2900 * MIB, Verdict.FITS, Cause.FITS),
        (False, 4 * GIB, Verdict.OOM, Cause.DECLARED),
        (False, 20 * GIB, Verdict.OOM, Cause.TOO_LARGE),
        (True, 4 * GIB, Verdict.TIGHT, Cause.DECLARED),
        (True, 20 * GIB, Verdict.OOM, Cause.TOO_LARGE),
    ],
)
def test_need_is_compared_with_what_is_declared(
    is_floor: bool, least: int, verdict: Verdict, cause: Cause
) -> None:
    """A declaration below the need denies as a card does; one that is a floor only warns."""
    share = replace(GPUMEM, is_floor=is_floor)
    (where,) = reach_of(declaring(share), [only(hami("15360;NVIDIA-Tesla T4"))]).reachable

    found = class_verdict(where, estimate(least=least))

    assert (found.verdict, found.reason) == (verdict, cause)


@pytest.mark.parametrize(
    ("annotations", "is_open"),
    [
        ({"nvidia.com/use-gputype": "A30, T4"}, True),
        ({"nvidia.com/use-gputype": "A30"}, False),
        ({"nvidia.com/nouse-gputype": "tesla t4"}, False),
        ({"nvidia.com/nouse-gputype": "V100"}, True),
        ({"nvidia.com/use-gputype": ""}, True),
    ],
)
def test_types_that_hami_is_told_choose_the_cards(
    annotations: dict[str, str], is_open: bool
) -> None:
    """Words that are part of the type, in any case."""
    where = only(hami("15360;NVIDIA-Tesla T4"))

    assert bool(reach_of(unit(annotations=annotations), [where]).reachable) is is_open


def test_types_say_nothing_where_hami_is_not() -> None:
    """Nobody reads them there."""
    pod = unit(annotations={"nvidia.com/use-gputype": "A30"})

    assert reach_of(pod, classes_of([node()])).reachable
