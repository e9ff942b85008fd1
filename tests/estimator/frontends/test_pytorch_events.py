"""Traces of PyTorch jobs: events, roles and sizes."""

from __future__ import annotations

import pytest

from estimator.trace import Phase, Role
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import (
    allocated_by,
    bert,
    by_role,
    fault,
    held_after,
    job,
    layers,
    llama,
    operators,
    peaks,
    torchvision,
)

pytestmark = pytest.mark.torch


def test_parameters_are_those_of_the_real_model(in_child: InChild) -> None:
    """Parameters and buffers of the trace have the bytes of the model torchvision builds."""
    document = job(torchvision())

    trace = in_child(children.trace, document)

    parameters, buffers = in_child(children.parameter_bytes, document)
    assert by_role(trace)[Role.PARAMETER] == parameters + buffers
    assert trace.parameters == 11_689_512


@pytest.mark.parametrize("model", [torchvision(), bert(), llama()], ids=["resnet", "bert", "llama"])
def test_every_freed_tensor_was_allocated_once(in_child: InChild, model: dict[str, object]) -> None:
    """Each tensor is allocated once and freed at most once, after its allocation."""
    trace = in_child(children.trace, job(model))

    assert fault(trace) is None


def test_both_steps_free_what_they_allocate(in_child: InChild) -> None:
    """After the second step as much is alive as after the first."""
    held = held_after(in_child(children.trace, job(torchvision())))

    assert held[1] == held[2]


def test_the_second_step_needs_at_least_the_first(in_child: InChild) -> None:
    """The optimizer's state of step 1 is alive during the backward pass of step 2."""
    most = peaks(in_child(children.trace, job(torchvision(), batch=8)))

    assert most[2] >= most[1] > most[0]


def test_the_same_spec_gives_the_same_trace(in_child: InChild) -> None:
    """Two traces of one spec are equal but for the seconds they took."""
    document = job(bert(), batch=4, input={"sequenceLength": 64})

    first, second = (in_child(children.trace, document) for _ in range(2))

    assert (first.kinds, first.ids, first.sizes, first.roles) == (
        second.kinds,
        second.ids,
        second.sizes,
        second.roles,
    )
    assert first.kernels == second.kernels


def test_sizes_are_affine_in_the_batch(in_child: InChild) -> None:
    """Every size at batch 24 follows from those at 8 and 16, in the same order of events."""
    low, middle, high = (
        in_child(children.trace, job(torchvision(), batch=batch)) for batch in (8, 16, 24)
    )

    assert low.kinds == middle.kinds == high.kinds
    assert low.ids == middle.ids == high.ids
    assert [2 * b - a for a, b in zip(low.sizes, middle.sizes, strict=True)] == list(high.sizes)


def test_gradients_are_as_large_as_the_parameters(in_child: InChild) -> None:
    """In each of two steps every parameter gets a gradient of its size."""
    trace = in_child(children.trace, job(layers(100, 200, 10)))

    weights = 4 * (100 * 200 + 200 + 200 * 10 + 10)
    assert by_role(trace)[Role.PARAMETER] == weights
    assert by_role(trace)[Role.GRADIENT] == 2 * weights


def test_events_name_the_module_in_forward_and_backward(in_child: InChild) -> None:
    """A convolution's backward is placed in the module whose forward ran it."""
    trace = in_child(children.trace, job(torchvision()))

    places = {(place.phase, place.operator, place.module) for place in trace.place_table}
    assert (Phase.FORWARD, "aten.convolution", "layer1.0.conv1") in places
    assert (Phase.BACKWARD, "aten.convolution_backward", "layer1.0.conv1") in places


def test_convolutions_say_all_that_cudnn_asks(in_child: InChild) -> None:
    """A convolution kernel has input, weight and output, and the attributes plans depend on."""
    document = job(torchvision(), runtime={"cudnnBenchmark": True})

    trace = in_child(children.trace, document)

    first = next(k for k in trace.kernels if k.operator == "aten.convolution")
    assert [operand.shape for operand in first.operands] == [
        (2, 3, 224, 224),
        (64, 3, 7, 7),
        (2, 64, 112, 112),
    ]
    attributes = dict(first.attributes)
    assert attributes["stride"] == (2, 2)
    assert attributes["padding"] == (3, 3)
    assert attributes["groups"] == 1
    assert attributes["benchmark"] is True
    assert attributes["deterministic"] is False
    assert {"aten.convolution_backward", "aten.addmm", "aten.mm"} <= operators(trace)


def test_channels_last_reaches_the_kernels(in_child: InChild) -> None:
    """`memoryFormat: channels_last` makes every convolution's input channels-last."""
    document = job(torchvision(), runtime={"memoryFormat": "channels_last"})

    trace = in_child(children.trace, document)

    inputs = [k.operands[0] for k in trace.kernels if k.operator == "aten.convolution"]
    assert all(operand.channels_last for operand in inputs)


def test_matrix_products_say_which_thread_runs_them(in_child: InChild) -> None:
    """Products of the backward pass belong to the autograd thread's handle."""
    trace = in_child(children.trace, job(layers(100, 200, 10)))

    threads = {k.operator: dict(k.attributes)["thread"] for k in trace.kernels}
    assert threads == {"aten.addmm": "forward", "aten.mm": "autograd"}


def test_prefetched_batches_wait_on_the_card(in_child: InChild) -> None:
    """With two batches ahead, three are alive in a step."""
    plain, ahead = (
        in_child(children.trace, job(layers(100, 10), batch=5, input={"prefetchBatches": n}))
        for n in (0, 2)
    )

    batch = 5 * 100 * 4 + 5 * 8
    assert peaks(ahead)[1] == peaks(plain)[1] + 2 * batch


def test_dropout_keeps_one_byte_an_element(in_child: InChild) -> None:
    """CUDA's fused dropout keeps a boolean mask beside its output."""
    model = layers(100, 50)
    model["config"]["layers"].append({"type": "dropout", "rate": 0.5})

    trace = in_child(children.trace, job(model, batch=8))

    assert allocated_by(trace, "aten.native_dropout") == [8 * 50 * 4, 8 * 50] * 2


def test_a_residual_join_needs_no_third_gradient(in_child: InChild) -> None:
    """Sums of gradients happen in place, as the engine does them; older versions do not."""
    new, old = (
        in_child(children.trace, job(torchvision(), frameworkVersion=version))
        for version in ("2.6.0", "1.13.1")
    )

    assert allocated_by(new, "aten.add", Phase.BACKWARD) == []
    assert len(allocated_by(old, "aten.add", Phase.BACKWARD)) == 2 * 8
