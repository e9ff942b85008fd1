"""What the tests of the JAX frontend run in a fork that has it; nothing here runs in pytest's.

documents -> traces, refusals
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from estimator.errors import EstimatorError, SpecError, UnsupportedJobError
from estimator.frontends import load
from estimator.spec import parse_spec
from estimator.trace import Trace
from estimator.traits import Traits

A100 = Traits(flash_attention=True, efficient_attention=True, native_bf16=True, xla_target="8.0")


def job(model: dict[str, Any], batch: int = 8, **rest: Any) -> dict[str, Any]:
    """Return a JobSpec of *model* on JAX."""
    given = rest.pop("input", {})
    return {
        "framework": "jax",
        "model": model,
        "input": {"batchSize": batch, **given},
        "training": {"optimizer": {"name": "sgd"}},
        **rest,
    }


def perceptron(width: int = 1024, depth: int = 4) -> dict[str, Any]:
    """Return the model part of dense layers, as Keras writes them."""
    layers = [
        {
            "module": "keras.layers",
            "class_name": "InputLayer",
            "config": {"batch_shape": [None, width], "dtype": "float32", "name": "input"},
        }
    ]
    layers += [
        {
            "module": "keras.layers",
            "class_name": "Dense",
            "config": {"name": f"dense_{index}", "units": width, "activation": "relu"},
        }
        for index in range(depth)
    ]
    config = {
        "module": "keras",
        "class_name": "Sequential",
        "config": {"name": "mlp", "layers": layers, "build_input_shape": [None, width]},
    }
    return {"source": "keras", "name": "mlp", "config": config}


PATIENT_SECONDS = 200.0
"""How long XLA may take here: a busy machine is no reason for another answer."""


def trace(document: dict[str, Any], memory_bytes: int | None = None) -> Trace:
    """Return the trace of *document*."""
    load("jax")
    from estimator.frontends.jax import tracing

    tracing.SECONDS = PATIENT_SECONDS
    traits = replace(A100, xla_memory_bytes=memory_bytes)
    return load("jax").trace_job(parse_spec(document), traits=traits)


def refusal(document: dict[str, Any]) -> tuple[str, str, str]:
    """Return kind, path and words of the error *document* is refused with."""
    try:
        trace(document)
    except SpecError as error:
        return error.kind, error.problems[0].path, str(error)
    except UnsupportedJobError as error:
        return error.kind, error.path, str(error)
    except EstimatorError as error:
        return error.kind, "", str(error)
    return "", "", ""


def run_by_cudnn(document: dict[str, Any]) -> str:
    """Return the names of layers that a card runs through cuDNN."""
    load("jax")
    from estimator.frontends.jax.recurrent import run_by_cudnn
    from estimator.frontends.jax.weightless import weightless
    from estimator.frontends.keras.models import build_model

    with weightless():
        return run_by_cudnn(build_model(parse_spec(document)))


def imported_tensorflow(document: dict[str, Any]) -> bool:
    """Return whether tracing *document* imported a second framework."""
    trace(document)
    return "tensorflow" in sys.modules


def traced_when_late(document: dict[str, Any]) -> tuple[Trace, Trace]:
    """Return the trace of *document*, and the one it has when XLA is late."""
    from estimator.errors import EstimateTimeoutError
    from estimator.frontends.jax import tracing

    def late(*_: Any) -> Any:
        raise EstimateTimeoutError("late")

    good = trace(document)
    vars(tracing)["_compile"] = late
    return good, trace(document)


def exported(*, open_sizes: bool = False, num_devices: int = 1) -> dict[str, Any]:
    """Return the model part of a small step that was exported."""
    import jax
    import jax.numpy as jnp

    def step(weights: Any, batch: Any) -> Any:
        def loss(weights: Any) -> Any:
            return jnp.tanh(batch @ weights).sum()

        value, gradient = jax.value_and_grad(loss)(weights)
        return value, weights - 0.1 * gradient

    rows = jax.export.symbolic_shape("b")[0] if open_sizes else 256
    arguments = (
        jax.ShapeDtypeStruct((1024, 1024), "float32"),
        jax.ShapeDtypeStruct((rows, 1024), "float32"),
    )
    made = jax.export.export(jax.jit(step, donate_argnums=0), platforms=["cuda"])(*arguments)
    return file_of("jax-export", bytes(made.serialize()))


def exported_with(part: str, writer: Callable[..., Any]) -> dict[str, Any]:
    """Return the model part of a step whose *part* of the file is written by *writer*."""
    from jax._src.export import serialization

    vars(serialization)[part] = writer
    return exported()


def traced_doubling_export() -> Trace:
    """Return the trace of a step whose trees have 2^60 branches, each level kept once."""
    from jax._src.export import serialization_generated as flat

    def doubling(builder: Any, _: Any) -> Any:
        node = None
        for _ in range(60):
            children: list[Any] = [node, node] if node is not None else []
            flat.PyTreeDefStartChildrenVector(builder, len(children))
            for child in children:
                builder.PrependUOffsetTRelative(child)
            vector = builder.EndVector()
            flat.PyTreeDefStart(builder)
            flat.PyTreeDefAddKind(builder, flat.PyTreeDefKind.tuple)
            flat.PyTreeDefAddChildren(builder, vector)
            node = flat.PyTreeDefEnd(builder)
        return node

    return trace(job(exported_with("_serialize_pytreedef", doubling), batch=1))


def refused_repeating_export(*, arguments: int, sizes: int) -> tuple[str, str, str]:
    """Return what a step is refused with that has one argument many times over."""
    from jax._src.export import serialization
    from jax._src.export import serialization_generated as flat

    plain = serialization._serialize_array

    def vector(builder: Any, start: Any, item: Any, length: int) -> Any:
        start(builder, length)
        for _ in range(length):
            builder.PrependUOffsetTRelative(item)
        return builder.EndVector()

    def repeated(builder: Any, write: Any, items: Any) -> Any:
        if write is not serialization._serialize_aval:
            return plain(builder, write, items)
        size = builder.CreateString("1")
        shape = vector(builder, flat.AbstractValueStartShapeVector, size, sizes)
        flat.AbstractValueStart(builder)
        flat.AbstractValueAddShape(builder, shape)
        argument = flat.AbstractValueEnd(builder)
        return vector(builder, flat.ExportedStartInAvalsVector, argument, arguments)

    return refusal(job(exported_with("_serialize_array", repeated), batch=1))


def file_of(kind: str, content: bytes) -> dict[str, Any]:
    """Return the model part of a file."""
    text = base64.b64encode(content).decode()
    return {"source": "file", "name": "step", "config": {"format": kind, "content": text}}


def traced_export() -> Trace:
    """Return the trace of an exported step."""
    return trace(job(exported(), batch=1))


def refused_export(**options: Any) -> tuple[str, str, str]:
    """Return what an exported step is refused with."""
    return refusal(job(exported(**options), batch=1))


def estimated(document: dict[str, Any], gpu: str) -> dict[str, Any]:
    """Return the whole estimate of *document*, as JSON types."""
    from estimator.catalog import resolve_device
    from estimator.frontends.jax import tracing
    from estimator.pipeline import estimate

    tracing.SECONDS = PATIENT_SECONDS
    answers = estimate(parse_spec(document), [resolve_device(gpu)])
    found: dict[str, Any] = json.loads(json.dumps(answers[0].document()))
    return found
