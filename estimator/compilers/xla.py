"""XLA:GPU without a GPU: the only importer of JAX's compile machinery.

    a module, text of a target -> XLA's own account on standard output

Runs in a fork of the compiler's process, which reads along and ends the fork as soon as the
buffers are assigned: machine code of a card that is not there is of no use.
Autotuning needs a card, so it is off: workspaces of convolutions and matrix products are none.

`jaxlib._jax`, `jaxlib._hlo` and `jax._src` are not public: `test_xla.py` compiles with the
installed release.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy
from jax._src import compiler as jax_compiler
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir
from jax.experimental import topologies
from jaxlib import _hlo, _jax

OPTIONS = {
    "xla_gpu_autotune_level": 0,
    "xla_dump_to": "-",
}
"""XLA's flags of every compile. A dump to `-` goes to standard output: no file is written."""

BYTECODE = b"ML\xefR"
"""How bytecode of MLIR begins."""

WITHOUT_TRITON = {"xla_gpu_enable_triton_gemm": False}
"""Taken if Triton cannot lower a matrix product, as of ConvNeXt's on cards of capability 8.0."""


def load(target: str) -> None:
    """Load XLA's compiler for GPUs; starts no thread, so a process may fork afterwards."""
    _topology(target, 1)


def compile_stablehlo(
    module: bytes, target: str, *, num_devices: int, options: dict[str, object]
) -> None:
    """Compile *module*, text or bytecode of StableHLO, for *num_devices* cards of *target*.

    Raises:
        Exception: whatever XLA says. Without any program that assembles it always ends so, after
            it has told what it assigned.
    """
    devices = _topology(target, num_devices).devices
    chosen = jax_compiler.get_compile_options(
        num_replicas=1,
        num_partitions=num_devices,
        device_assignment=numpy.arange(num_devices).reshape(1, -1),
        env_options_overrides={**OPTIONS, **options},
    )
    with mlir.make_ir_context() as context:
        parsed = _parsed(module, context)
        devices[0].client.compile(parsed, _jax.DeviceList(tuple(devices)), chosen)


def _parsed(module: bytes, context: ir.Context) -> ir.Module:
    """Return *module* in memory, also if it is a portable artifact."""
    if module.startswith(BYTECODE):
        try:
            return _jax.mlir.deserialize_portable_artifact(module, context)
        except (ValueError, _jax.JaxRuntimeError):
            pass  # plain bytecode, whose first dialect is not VHLO
    return ir.Module.parse(module)


def bytecode_of(module: ir.Module) -> bytes:
    """Return a lowered *module* as bytecode."""
    return bytes(mlir.module_to_bytecode(module))


def stablehlo_of(hlo: bytes) -> bytes:
    """Return an `HloModuleProto` as StableHLO.

    Copies become reshapes to the same shape, which XLA drops: StableHLO has no copy.
    """
    text = _hlo.HloModule.from_serialized_hlo_module_proto(hlo).to_string()
    plain = _hlo.hlo_module_from_text(text.replace(" copy(", " reshape("))
    return bytes(_jax.mlir.hlo_to_stablehlo(plain.as_serialized_hlo_module_proto()))


def _topology(target: str, num_devices: int) -> topologies.TopologyDescription:
    return topologies.get_topology_desc(
        platform="cuda", topology_name="", target_config=target, topology=f"1x1x{num_devices}"
    )
