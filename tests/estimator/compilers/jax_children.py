"""What the compiler's tests run in a process that has JAX; nothing here runs in pytest's.

plain values -> plain values
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from estimator.compilers import CompiledMemory, Form, Job, compile_module, ready, target_for
from estimator.errors import EstimatorError


def _module(*, size: int = 1024, layers: int = 4, donate: bool = True) -> Any:
    """Return a lowered training step of a perceptron."""
    import jax
    import jax.numpy as jnp

    def step(weights: Any, batch: Any) -> Any:
        def loss(weights: Any) -> Any:
            out = batch
            for index in range(layers):
                out = jnp.tanh(out @ weights[index])
            return (out**2).sum()

        value, gradients = jax.value_and_grad(loss)(weights)
        return value, weights - 0.1 * gradients

    weights = jax.ShapeDtypeStruct((layers, size, size), "float32")
    batch = jax.ShapeDtypeStruct((256, size), "float32")
    compiled_later = jax.jit(step, donate_argnums=(0,) if donate else ())
    return compiled_later.trace(weights, batch).lower(lowering_platforms=("cuda",))


def _bytecode(lowering: Any) -> bytes:
    from estimator.compilers.xla import bytecode_of

    return bytecode_of(lowering.compiler_ir("stablehlo"))


def perceptron(*, donate: bool = True) -> CompiledMemory:
    """Return what a perceptron's step takes."""
    ready()
    return compile_module(Job(module=_bytecode(_module(donate=donate)), target=target_for("8.0")))


def as_hlo() -> tuple[CompiledMemory, CompiledMemory]:
    """Return the same step, given as StableHLO and as an HLO protocol buffer."""
    ready()
    lowering = _module()
    hlo = lowering.compiler_ir("hlo").as_serialized_hlo_module_proto()
    target = target_for("8.0")
    return (
        compile_module(Job(module=_bytecode(lowering), target=target)),
        compile_module(Job(module=hlo, target=target, form=Form.HLO)),
    )


def own_figures() -> tuple[CompiledMemory, dict[str, int]]:
    """Return our account of a step, and XLA's own statistics of the executable.

    Without limits, so that XLA may assemble it: the one compile here that runs to its end.
    """
    ready()
    lowering = _module()
    module = _bytecode(lowering)
    ours = compile_module(Job(module=module, target=target_for("8.0")))
    import numpy
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax.experimental import topologies
    from jaxlib import _jax

    devices = topologies.get_topology_desc(
        platform="cuda",
        topology_name="",
        target_config=target_for("8.0").text,
        topology="1x1x1",
    ).devices
    options = compiler.get_compile_options(
        num_replicas=1,
        num_partitions=1,
        device_assignment=numpy.array([[0]]),
        env_options_overrides={"xla_gpu_autotune_level": 0},
    )
    with mlir.make_ir_context():
        parsed = ir.Module.parse(module)
        executable = devices[0].client.compile(parsed, _jax.DeviceList(tuple(devices)), options)
    stats = executable.get_compiled_memory_stats()
    names = ("argument", "output", "alias", "temp")
    return ours, {name: getattr(stats, f"{name}_size_in_bytes") for name in names}


def problem(module: bytes, seconds: float = 40.0) -> tuple[str, str]:
    """Return the kind and the words of the error that *module* ends in."""
    ready()
    try:
        compile_module(Job(module=module, target=target_for("8.0"), seconds=seconds))
    except EstimatorError as error:
        return error.kind, str(error)
    return "", ""


def after_a_late_one() -> tuple[str, int]:
    """Return the kind of error of a compile with no time, and what the next one takes."""
    ready()
    module = _bytecode(_module())
    target = target_for("8.0")
    kind = ""
    try:
        compile_module(Job(module=module, target=target, seconds=0.01))
    except EstimatorError as error:
        kind = error.kind
    return kind, compile_module(Job(module=module, target=target)).total


def in_a_jail() -> int:
    """Return what a step takes in a process that has no sockets, files or programs."""
    from estimator.processes import jail

    ready()  # as a worker does: afterwards it cannot
    jail.confine(memory_bytes=3 << 30, wall_seconds=120)
    return perceptron().total


def threads() -> int:
    """Return how many threads a process has that has loaded the compiler."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def outlined(name: str, optimizer: str) -> tuple[int, int]:
    """Return what the cheap estimate and the compile say of a Keras application."""
    ready()
    from estimator.compilers.liveness import outline_of
    from estimator.frontends.jax.keras_step import keras_step
    from estimator.frontends.jax.lowering import lowered
    from estimator.frontends.jax.mesh import layout_of
    from estimator.frontends.notebook import Notebook
    from estimator.spec import parse_spec

    spec = parse_spec(
        {
            "framework": "jax",
            "model": {"source": "keras", "name": name},
            "input": {"batchSize": 16},
            "training": {"optimizer": {"name": optimizer}},
        }
    )
    module = lowered(keras_step(spec, Notebook()), layout_of(spec))
    assert module.hlo is not None
    about = outline_of(module.hlo()).total
    job = Job(module=module.module, target=target_for("8.0"), seconds=200)
    return about, compile_module(job).total
