"""Every model of keras.applications on JAX: the compile, and the cheap estimate beside it.

    python -m tests.bench.xla_zoo [NAME …]

Each is compiled in a fork of one process, for a card of compute capability 8.0: SGD with momentum,
batch 8, the model's own image size. Seconds are of the processor for the compile, of the clock for
the cheap estimate. `xla_transformers.py` prints the same of steps that are no Keras model.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from estimator.compilers import Job, compile_module, ready, target_for
from estimator.errors import EstimatorError
from estimator.frontends import load
from estimator.spec import parse_spec
from estimator.units import MIB

TARGET = "8.0"
SECONDS = 600.0


def row_of(name: str) -> dict[str, Any]:
    """Return the figures of one model."""
    from estimator.frontends.jax.keras_step import keras_step
    from estimator.frontends.jax.lowering import lowered
    from estimator.frontends.jax.mesh import layout_of
    from estimator.frontends.notebook import Notebook

    ready()
    spec = parse_spec(
        {
            "framework": "jax",
            "model": {"source": "keras", "name": name},
            "input": {"batchSize": 8},
            "training": {"optimizer": {"name": "sgd", "momentum": 0.9}},
        }
    )
    started = time.perf_counter()
    module = lowered(keras_step(spec, Notebook()), layout_of(spec))
    built = time.perf_counter() - started
    assert module.hlo is not None
    return {"built": built, **both(module.module, module.hlo(), seconds=SECONDS)}


def both(module: bytes, text: str, *, seconds: float) -> dict[str, Any]:
    """Return what the compile of *module* and the estimate from its *text* say, in bytes.

    Raises:
        EstimatorError: if XLA does not compile it in *seconds*.
    """
    from estimator.compilers.liveness import outline_of

    started = time.perf_counter()
    about = outline_of(text).total
    outlined = time.perf_counter() - started
    memory = compile_module(Job(module=module, target=target_for(TARGET), seconds=seconds))
    return {
        "total": memory.total,
        "about": about,
        "outlined": outlined,
        "compiled": memory.cpu_seconds,
        "resident": memory.resident_bytes,
    }


def in_fork(row_of: Callable[[str], dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the figures *row_of* finds of one model in a fork of this process."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = row_of(name)
        except EstimatorError as error:
            answer = {"error": str(error).partition("\n")[0]}
        with os.fdopen(writing, "w") as out:
            json.dump(answer, out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        answer = json.loads(said.read() or '{"error": "the fork ended"}')
    os.waitpid(pid, 0)
    found: dict[str, Any] = answer
    return found


def print_rows(names: Iterable[str], row_of: Callable[[str], dict[str, Any]]) -> None:
    """Print one line a model, then how far the cheap estimate was from the compile."""
    off: list[float] = []
    print("| model | MiB | cheap | off | build s | cheap s | compile s | host MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        row = in_fork(row_of, name)
        if "error" in row:
            print(f"| {name} | {row['error']} | | | | | | |", flush=True)
            continue
        off.append(row["about"] / row["total"] - 1)
        print(
            f"| {name} | {row['total'] // MIB:,} | {row['about'] // MIB:,} | {off[-1]:+.1%} "
            f"| {row['built']:.1f} | {row['outlined']:.2f} | {row['compiled']:.1f} "
            f"| {row['resident'] // MIB:,} |",
            flush=True,
        )
    if off:
        print(f"\n{len(off)} models, the cheap estimate {min(off):+.1%} to {max(off):+.1%}")


def main() -> None:
    """Print the figures of the models asked for, or of all."""
    load("jax")
    from estimator.frontends.keras.models import application_names

    print_rows(sys.argv[1:] or application_names(), row_of)


if __name__ == "__main__":
    main()
