"""Estimate the model zoos of TensorFlow and MXNet: method, time and peak of every name.

    names of keras.applications and of MXNet's zoo -> one training estimate each -> a table

Part of `make soak`. Exit 1 if a name has no estimate. Words after the command choose cases by how
their ids begin: `mxnet/resnet`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from admission.commands.estimate_cases import answer_cases
from estimator.catalog import resolve_device
from estimator.units import MIB
from estimator.workers.limits import Limits
from estimator.workers.pool import Workers
from tests.bench.figures import machine

CARD = "a100-sxm4-80gb"
BATCH = 8
SECONDS = 300.0
"""Of one estimate: a busy machine is no reason to have none. What is asked stands in the table."""
KERAS_NAMES = (
    "from estimator.frontends.keras.models import application_names\n"
    "print('\\n'.join(application_names()))"
)
MXNET_NAMES = "from estimator.frontends.mxnet.zoo import names\nprint('\\n'.join(names()))"


def cases(beginnings: Sequence[str]) -> list[bytes]:
    """Return a case for every name, those whose ids begin in one of these ways if any are given."""
    made = [*_keras(), *_mxnet()]
    chosen = [one for one in made if not beginnings or one["id"].startswith(tuple(beginnings))]
    return [orjson.dumps(one) for one in chosen]


def _keras() -> Iterator[dict[str, Any]]:
    for name in _names(KERAS_NAMES):
        yield _case("tensorflow", {"source": "keras", "name": name}, {"compile": False})


def _mxnet() -> Iterator[dict[str, Any]]:
    for name in _names(MXNET_NAMES):
        yield _case("mxnet", {"source": "mxnet", "name": name}, {"compile": True})


def _names(code: str) -> list[str]:
    """Return the names a process of its own prints: this one imports no framework."""
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    made = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        timeout=300,
        text=True,
        env=environment,
    )
    return made.stdout.split()


def _case(framework: str, model: dict[str, Any], training: dict[str, Any]) -> dict[str, Any]:
    optimizer = {"name": "sgd", "momentum": 0.9}
    spec = {
        "framework": framework,
        "model": model,
        "input": {"batchSize": BATCH},
        "training": {"optimizer": optimizer, **training},
    }
    return {"id": f"{framework}/{model['name']}", "spec": spec}


async def soak(beginnings: Sequence[str]) -> int:
    """Estimate all and print the table."""
    console = Console(highlight=False)
    console.print(machine(), soft_wrap=True)
    lines = cases(beginnings)
    table = Table("name", "method", "seconds", "peak, MiB", "least, MiB")
    workers = Workers(Limits(wall_seconds=SECONDS))
    failed = 0
    try:
        async for answer in answer_cases(
            lines, workers, device=resolve_device(CARD), window=workers.max_concurrent
        ):
            if "error" in answer:
                failed += 1
                table.add_row(answer["id"], answer["error"]["message"][:60], "", "", "")
                continue
            estimate = answer["estimate"]
            table.add_row(
                answer["id"],
                estimate["method"],
                f"{estimate['elapsedSeconds']:.1f}",
                f"{estimate['peak']['deviceBytes'] / MIB:,.0f}",
                f"{estimate['least']['deviceBytes'] / MIB:,.0f}",
            )
    finally:
        await workers.close()
    console.print(table)
    console.print(f"{len(lines) - failed} of {len(lines)} have an estimate")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(soak(sys.argv[1:])))
