"""Transformers written in JAX: the compile, and the cheap estimate beside it.

    python -m tests.bench.xla_transformers [NAME …]

Each of `xla_transformer_cases.py` is compiled in a fork of one process, for a card of compute
capability 8.0, as `xla_zoo.py` does with Keras models. A compile that is not finished in a minute
is named in its row.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from estimator.compilers import ready
from estimator.frontends import load
from tests.bench.xla_transformer_cases import TRANSFORMERS
from tests.bench.xla_zoo import both, print_rows

SECONDS = 60.0


def row_of(name: str) -> dict[str, Any]:
    """Return the figures of one transformer."""
    from estimator.compilers.xla import bytecode_of
    from tests.bench.xla_transformer_steps import lowered_step

    ready()
    started = time.perf_counter()
    lowering = lowered_step(TRANSFORMERS[name])
    module = bytecode_of(lowering.compiler_ir("stablehlo"))
    built = time.perf_counter() - started
    text = str(lowering.compiler_ir("hlo").as_hlo_text())
    return {"built": built, **both(module, text, seconds=SECONDS)}


def main() -> None:
    """Print the figures of the transformers asked for, or of all."""
    load("jax")
    print_rows(sys.argv[1:] or TRANSFORMERS, row_of)


if __name__ == "__main__":
    main()
