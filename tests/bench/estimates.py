"""How long an estimate takes, and what the article's ResNet-50 needs."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from typing import Any

from admission.estimates import EstimatePool
from estimator.catalog import resolve_device
from estimator.result import Estimate
from estimator.spec import Framework, JobSpec, parse_spec
from estimator.units import GIB
from estimator.workers.pool import Workers
from tests.bench.figures import Figure

REPEATS = 5

RESNET50: dict[str, Any] = {
    "framework": "pytorch",
    "model": {"source": "torchvision", "name": "resnet50"},
    "input": {"batchSize": 256, "imageSize": [3, 224, 224]},
    "training": {"precision": "fp32", "optimizer": {"name": "sgd", "momentum": 0.9}},
}
LLAMA3_8B: dict[str, Any] = {
    "framework": "pytorch",
    "model": {
        "source": "huggingface",
        "name": "meta-llama/Meta-Llama-3-8B",
        "task": "causal-lm",
    },
    "input": {"batchSize": 1, "sequenceLength": 2048},
    "training": {"precision": "bf16", "optimizer": {"name": "adamw", "fused": True}},
}


async def estimate_figures() -> AsyncIterator[Figure]:
    """Yield the figures of estimates by a warm template."""
    workers = Workers(preload=(Framework.PYTORCH,))
    await workers.start()
    try:
        resnet, llama = parse_spec(RESNET50), parse_spec(LLAMA3_8B)
        await _timed(workers, resnet, "a100-sxm4-40gb")
        seconds, estimate = await _median(workers, resnet, "a100-sxm4-40gb")
        yield Figure(name="ResNet-50 b256 estimate", value=seconds, unit="s", high=0.9)
        allocated = estimate.peak.allocated_bytes / GIB
        yield Figure(
            name="ResNet-50 b256 fp32 SGD allocated", value=allocated, unit="GiB", low=21, high=24
        )
        seconds, _ = await _median(workers, llama, "h100-sxm5-80gb")
        yield Figure(name="Llama-3-8B full step estimate", value=seconds, unit="s", high=4.0)
        await _timed(workers, _at_batch(LLAMA3_8B, 8), "h100-sxm5-80gb")
        while workers.traces_ahead:  # noqa: ASYNC110 (it ends by itself, and sets no event)
            await asyncio.sleep(0.01)
        seconds, _ = await _timed(workers, _at_batch(LLAMA3_8B, 12), "h100-sxm5-80gb")
        yield Figure(name="the same at a second batch", value=seconds, unit="s", high=0.3)
        pool = EstimatePool(workers)
        await _timed(pool, resnet, "a100-sxm4-40gb")
        seconds, _ = await _median(pool, resnet, "a100-sxm4-40gb")
        yield Figure(name="the same from the cache", value=seconds * 1000, unit="ms", high=5.0)
    finally:
        await workers.close()


def _at_batch(document: dict[str, Any], batch: int) -> JobSpec:
    return parse_spec({**document, "input": {**document["input"], "batchSize": batch}})


async def _median(
    estimator: Workers | EstimatePool, spec: JobSpec, gpu: str
) -> tuple[float, Estimate]:
    runs = [await _timed(estimator, spec, gpu) for _ in range(REPEATS)]
    return statistics.median(seconds for seconds, _ in runs), runs[-1][1]


async def _timed(
    estimator: Workers | EstimatePool, spec: JobSpec, gpu: str
) -> tuple[float, Estimate]:
    started = time.perf_counter()
    (estimate,) = await estimator.estimate(spec, [resolve_device(gpu)])
    return time.perf_counter() - started, estimate
