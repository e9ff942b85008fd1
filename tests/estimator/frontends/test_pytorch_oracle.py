"""The trace against torch itself, and the process it runs in."""

from __future__ import annotations

import pytest

from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import bert, job, layers, peak, torchvision

pytestmark = pytest.mark.torch


def test_a_small_mlp_peaks_where_the_real_allocator_does(in_child: InChild) -> None:
    """The live peak equals that of torch's CPU allocator in the same two steps, to the byte."""
    widths = (300, 500, 700, 10)
    document = job(
        layers(*widths),
        batch=1000,
        training={"optimizer": {"name": "sgd", "momentum": 0.9, "foreach": False}},
    )

    trace = in_child(children.trace, document)

    assert peak(trace) == in_child(children.real_cpu_peak, widths, 1000, 2)


def test_a_fork_made_after_the_import_can_trace(in_child: InChild) -> None:
    """The template has one thread and has run no backward, so its forks can."""
    threads, has_gradient = in_child(children.threads_and_autograd)

    assert threads == 1
    assert has_gradient
    assert in_child(children.trace, job(torchvision())).parameters == 11_689_512


def test_a_trace_leaves_torch_as_it_was(in_child: InChild) -> None:
    """Patches, dispatcher rules and defaults are undone at the end."""
    document = job(bert(), training={"precision": "amp-fp16"})

    state = in_child(children.state_after_a_trace, document)

    assert state == dict.fromkeys(state, True)
