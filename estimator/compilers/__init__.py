"""Compilers of whole steps: XLA for a card that is not there.

    a module, target -> CompiledMemory

`compile_module` asks a process of its own, `xla.py` runs in it and is the only importer of JAX's
compile machinery. A frontend calls `ready` before it does anything with its framework.
"""

from estimator.compilers.compiler import Form, Job, compile_module, ready
from estimator.compilers.memory import Buffer, CompiledMemory
from estimator.compilers.target import SCARCE, Target, target_for

__all__ = [
    "SCARCE",
    "Buffer",
    "CompiledMemory",
    "Form",
    "Job",
    "Target",
    "compile_module",
    "ready",
    "target_for",
]
