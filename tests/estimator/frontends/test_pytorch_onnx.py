"""Forward graphs of ONNX files, run as models of torch: against the same of its own modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from admission.detect.onnx_graph import read_graph
from estimator.trace import AT_MOST, Method, Role, Trace
from tests.admission.detect.onnx_files import PERCEPTRON
from tests.estimator.frontends import children
from tests.estimator.frontends.onnx_graphs import (
    AS_LAYERS,
    CONVOLUTIONS,
    GROUPS,
    attention,
    graph,
    grouped,
    job,
    numbers,
    stored,
)

pytestmark = pytest.mark.torch
InChild = Callable[..., Any]


def sizes(trace: Trace, *, least: int = 9) -> Counter[tuple[int, Role]]:
    """Return how many tensors of each size and role a trace has, counters of steps left out."""
    return Counter(
        (size, Role(role))
        for size, role in zip(trace.sizes, trace.roles, strict=True)
        if size >= least
    )


def peak(trace: Trace) -> int:
    """Return the most bytes alive at once."""
    held = most = 0
    for kind, number in zip(trace.kinds, trace.ids, strict=True):
        if kind < 2:
            held += trace.sizes[number] * (1 if kind == 0 else -1)
            most = max(most, held)
    return most


@pytest.mark.parametrize("precision", ["fp32", "bf16", "amp-fp16"])
def test_a_graph_allocates_what_the_same_modules_do(in_child: InChild, precision: str) -> None:
    """Convolution, batch norm, activation, pooling and a layer: the same tensors."""
    training = {"precision": precision}
    document = job(CONVOLUTIONS, training=training)
    layers = {**document, "model": {"source": "layers", "name": "l", "config": AS_LAYERS}}

    of_graph, of_modules = in_child(children.trace, document), in_child(children.trace, layers)

    assert sizes(of_graph) == sizes(of_modules)
    assert abs(peak(of_graph) - peak(of_modules)) <= 64  # a counter of batches is no tensor here
    assert (of_graph.method, of_modules.method) == (Method.FORMULA, Method.TRACE)
    assert "forward description" in of_graph.unknowns[-1].reason


def test_an_evaluation_and_inference_run(in_child: InChild) -> None:
    """Batch norm has its running means then: nothing is kept for a backward pass."""
    trained = in_child(children.trace, job(CONVOLUTIONS))
    infer = in_child(children.trace, job(CONVOLUTIONS, phase="infer"))
    evaluated = in_child(
        children.trace, job(CONVOLUTIONS, training={"evaluation": {"batchSize": 2}})
    )

    assert peak(infer) < peak(trained)
    assert len(evaluated.sizes) > len(trained.sizes)


@pytest.mark.parametrize("group", GROUPS)
def test_what_exporters_take_apart_is_one_kernel_again(in_child: InChild, group: str) -> None:
    """Apart it would keep up to four times as much for backward."""
    apart, whole = (in_child(children.trace, job(grouped(lines))) for lines in GROUPS[group])

    assert sizes(apart) == sizes(whole)


def test_attention_written_out_may_run_fused(in_child: InChild) -> None:
    """Nothing says whether the job does: only the weights are certain, and least rests on them."""
    trace = in_child(children.trace, job(attention("batch")))

    assert AT_MOST in trace.facts
    assert AT_MOST not in in_child(children.trace, job(CONVOLUTIONS)).facts


def test_a_graph_exported_for_one_batch_runs_with_the_jobs(in_child: InChild) -> None:
    """The batch is written into its shapes: they are those of the batch it runs with."""
    open_batch = in_child(children.trace, job(attention("batch"), batch=5))
    of_one = in_child(children.trace, job(attention(1), batch=5))
    of_two = in_child(children.trace, job(attention(2), batch=5))

    assert sizes(open_batch) == sizes(of_one) == sizes(of_two)


def test_shapes_that_a_graph_computes_are_no_tensors_on_the_card(in_child: InChild) -> None:
    """`Shape`, `Gather`, `Concat` are Python in a model: what they make has no memory there."""
    lines = """
    s = Shape(x)
    n = Gather(s, zero)
    u = Unsqueeze(n, axis)
    c = Concat(u, rest)
    r = Reshape(x, c)
    y = MatMul(r, w)
    """
    computed = graph(
        lines,
        inputs={"x": ["batch", 4, 8]},
        tensors={
            "zero": stored(dtype="int64", values=[0]),
            "axis": numbers(0),
            "rest": numbers(32),
            "w": stored(32, 10),
        },
        attributes={"c": {"axis": 0}},
    )
    told = graph(
        "r = Reshape(x, s)\ny = MatMul(r, w)",
        inputs={"x": ["batch", 4, 8]},
        tensors={"s": numbers(-1, 32), "w": stored(32, 10)},
    )

    assert sizes(in_child(children.trace, job(computed))) == sizes(
        in_child(children.trace, job(told))
    )


def test_running_means_masks_and_constants_are_not_trained(in_child: InChild) -> None:
    """Gradients are of weights: eight channels of scale and shift, not of mean and variance."""
    trace = in_child(children.trace, job(CONVOLUTIONS))
    weights = [8 * 3 * 3 * 3, 8, 8, 8, 10 * 512, 10]

    gradients = sorted(size for (size, role) in sizes(trace).elements() if role is Role.GRADIENT)

    assert gradients == sorted([4 * each for each in weights] * 2)  # two steps


def test_operators_that_are_not_modelled_are_named(in_child: InChild) -> None:
    """All of them at once, those of other domains with their domain."""
    config = graph(
        "a = com.microsoft.FastGelu(x)\nb = Loop(a)\ny = MatMul(b, w)",
        inputs={"x": ["batch", 8]},
        tensors={"w": stored(8, 8)},
    )

    refusal = in_child(children.refusal, job(config))

    assert (refusal.kind, refusal.code) == ("unsupported", "operator")
    assert "'Loop', 'com.microsoft.FastGelu'" in refusal.message


def changed(**changes: Any) -> dict[str, Any]:
    """Return the network of convolutions with some keys of its graph changed."""
    return {**CONVOLUTIONS, **changes}


@pytest.mark.parametrize(
    ("config", "path"),
    [
        (changed(nodes=[]), "model.config.nodes"),
        (changed(outputs=[99]), "model.config.outputs"),
        (changed(nodes=[{"op": "Relu", "inputs": [40]}]), "model.config.nodes[0].inputs"),
        (changed(nodes=[{"op": "Relu", "inputs": [-2]}]), "model.config.nodes[0].inputs[0]"),
        (changed(extra=1), "model.config.extra"),
        (
            changed(tensors=[{"dtype": "float32", "shape": [1 << 50]}]),
            "model.config.tensors[0].shape[0]",
        ),
        (
            changed(tensors=[{"dtype": "float32", "shape": [3], "values": [1.0]}]),
            "model.config.tensors[0]",
        ),
    ],
)
def test_broken_graphs_name_the_place(in_child: InChild, config: dict[str, Any], path: str) -> None:
    """A person may write one: problems are those of any spec."""
    refusal = in_child(children.refusal, job(config))

    assert refusal.kind == "spec"
    assert path in [each for each, _ in refusal.problems]


@pytest.mark.parametrize(
    ("shape", "given", "path"),
    [
        (["batch", 3, "h", "w"], {}, "input.imageSize"),
        (["batch", 3, 16, 16], {"imageSize": [3, 32, 32]}, "input.imageSize"),
        (["batch", 3, 16, 16], {"shape": [5]}, "input.shape"),
    ],
)
def test_sizes_that_nobody_told_are_named(
    in_child: InChild, shape: list[int | str], given: dict[str, Any], path: str
) -> None:
    """What the graph leaves open the spec says, and what it fixes the spec cannot change."""
    config = changed(inputs=[{"name": "x", "dtype": "float32", "shape": shape}])

    refusal = in_child(children.refusal, job(config, input=given))

    assert (refusal.kind, {each for each, _ in refusal.problems}) == ("spec", {path})


def test_open_sizes_are_taken_from_the_spec(in_child: InChild) -> None:
    """Images of another size than a fixed graph has would not fit its last layer: these do."""
    config = changed(inputs=[{"name": "x", "dtype": "float32", "shape": ["b", 3, "h", "w"]}])

    opened = in_child(children.trace, job(config, input={"imageSize": [3, 16, 16]}))

    assert sizes(opened) == sizes(in_child(children.trace, job(CONVOLUTIONS)))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (changed(tensors=[*CONVOLUTIONS["tensors"][:-2], stored(10, 99), stored(10)]), "Gemm"),
        (
            graph(
                "r = Reshape(x, s)\ny = MatMul(r, w)",
                inputs={"x": ["batch", 4]},
                tensors={"s": stored(200, dtype="int64"), "w": stored(4, 4)},
            ),
            "depends on values",
        ),
        (
            graph(
                "y = Conv(x, w)",
                inputs={"x": ["batch", 3, 8, 8]},
                tensors={"w": stored(3, 3, 1, 1)},
                attributes={"y": {"strides": "wide"}},
            ),
            "of another type",
        ),
    ],
)
def test_a_node_that_does_not_fit_is_named(
    in_child: InChild, config: dict[str, Any], reason: str
) -> None:
    """A real run would fail alike, or its shapes depend on numbers that no trace has."""
    refusal = in_child(children.refusal, job(config))

    assert refusal.kind == "unsupported"
    assert reason in refusal.message


def test_a_task_that_the_output_is_not_for_is_refused(in_child: InChild) -> None:
    """Tokens of a network that gives a class for each picture."""
    document = job(CONVOLUTIONS)
    document["model"]["task"] = "causal-lm"

    assert in_child(children.refusal, document).code == "task"


def test_a_file_that_is_no_graph_is_refused_as_before(in_child: InChild) -> None:
    """A module of a person's own is nothing the webhook opens."""
    refusal = in_child(children.refusal, job({}))

    assert (refusal.code, refusal.path) == ("model", "model.source")
    assert "vramgate trace" in refusal.hint


def test_what_admission_reads_of_a_file_is_what_is_run_here(in_child: InChild) -> None:
    """From the bytes of an ONNX file to a trace: 130 weights, trained."""
    trace = in_child(children.trace, job(read_graph(PERCEPTRON)))

    assert trace.parameters == 10 * 12 + 10
    assert trace.method is Method.FORMULA
