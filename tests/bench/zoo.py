"""Trace every classification model of torchvision and timm: `make soak`.

    names -> one training estimate each -> how many have an answer, and why the others have none

Minutes, not seconds; exit 1 if a model of the zoos has no estimate.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import orjson
from rich.console import Console

from admission.commands.estimate_cases import answer_cases
from estimator.catalog import resolve_device
from estimator.workers.pool import Workers
from tests.bench.figures import machine

LIST = """
import timm, torchvision.models as zoo
print(*("torchvision " + name for name in zoo.list_models(module=zoo)), sep="\\n")
print(*("timm " + name for name in timm.list_models()), sep="\\n")
"""
CARD = "a100-sxm4-80gb"
BATCH = 2


def names() -> list[tuple[str, str]]:
    """Return source and name of every model, listed in a process of its own."""
    listed = subprocess.run(
        [sys.executable, "-c", LIST], capture_output=True, text=True, check=True, timeout=300
    )
    pairs = (line.split() for line in listed.stdout.splitlines())
    return [(source, name) for source, name in pairs]


def cases(models: list[tuple[str, str]]) -> Iterator[bytes]:
    """Yield one case a model."""
    for source, name in models:
        spec = {
            "framework": "pytorch",
            "model": {"source": source, "name": name},
            "input": {"batchSize": BATCH},
            "training": {"optimizer": {"name": "sgd", "momentum": 0.9}},
        }
        yield orjson.dumps({"id": f"{source}/{name}", "spec": spec})


async def soak() -> int:
    """Estimate all; print the failures and the count."""
    console = Console(highlight=False)
    console.print(machine(), soft_wrap=True)
    models = names()
    workers = Workers()
    answered = failed = 0
    try:
        lines = cases(models)
        async for answer in answer_cases(lines, workers, device=resolve_device(CARD), window=4):
            answered += 1
            if "error" in answer:
                failed += 1
                console.print(f"{answer['id']}: {answer['error']['message'][:300]}", soft_wrap=True)
            if answered % 100 == 0:
                console.print(f"{answered} of {len(models)}, {failed} without an answer")
    finally:
        await workers.close()
    console.print(f"{answered} models, {failed} without an answer")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(soak()))
