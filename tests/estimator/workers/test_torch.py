"""The PyTorch template: imports PyTorch, and its forks trace."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from estimator.catalog import resolve_device
from estimator.pipeline import estimate
from estimator.spec import Framework, JobSpec, parse_spec
from estimator.workers.answer import plans_of
from estimator.workers.pool import Workers
from tests.estimator.workers.cases import children_of, until

EXAMPLE = Path(__file__).parents[3] / "deploy" / "examples" / "specs" / "resnet50.yaml"

pytestmark = [pytest.mark.torch, pytest.mark.slow]
in_module = pytest.mark.asyncio(loop_scope="module")


def _spec(model: str = "resnet18") -> JobSpec:
    return parse_spec(
        {
            "framework": "pytorch",
            "model": {"source": "torchvision", "name": model},
            "input": {"batchSize": 2, "imageSize": [3, 64, 64]},
        }
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def torch_workers() -> AsyncIterator[Workers]:
    """Workers with the real frontends."""
    pool = Workers(max_concurrent=2)
    yield pool
    await pool.close()


@in_module
async def test_the_template_forks_after_its_whole_start_and_traces(torch_workers: Workers) -> None:
    """A template that imported everything has one thread, and forks of it trace, repeatedly."""
    readiness = await torch_workers.ready(Framework.PYTORCH)
    assert readiness.num_threads == 1
    assert readiness.confined

    cards = [resolve_device("t4"), resolve_device("a100-sxm4-40gb")]
    first = await torch_workers.estimate(_spec(), cards)
    second = await torch_workers.estimate(_spec(), cards)

    assert [estimate.device.name for estimate in first] == ["t4", "a100-sxm4-40gb"]
    assert [estimate.peak for estimate in first] == [estimate.peak for estimate in second]


@in_module
async def test_traces_run_at_the_same_time(torch_workers: Workers) -> None:
    """Two forks trace side by side and do not disturb each other."""
    card = resolve_device("t4")
    alone = await torch_workers.estimate(_spec("resnet50"), [card])

    together = await asyncio.gather(
        torch_workers.estimate(_spec("resnet50"), [card]),
        torch_workers.estimate(_spec("resnet50"), [card]),
    )

    assert [pair[0].peak for pair in together] == [alone[0].peak] * 2


@in_module
async def test_a_v100_is_answered_by_the_cudnn_that_comes_with_us(torch_workers: Workers) -> None:
    """The example ResNet-50: no live library has answers for Volta, the table has them all."""
    document = yaml.safe_load(EXAMPLE.read_text("utf-8"))
    spec = parse_spec({**document, "frameworkVersion": "2.9.1"})

    (estimate,) = await torch_workers.estimate(spec, [resolve_device("v100-sxm2-16gb")])

    (note,) = [each for each in estimate.assumptions if each.path == "runtime.cudnn"]
    assert note.value == "cuDNN 9.10.2"
    assert note.reason == "cuDNN 9.10.2 was asked for each convolution's plans"


ALONE = """
import asyncio, sys
from estimator.catalog import resolve_device
from estimator.spec import parse_spec
from estimator.workers.pool import Workers

async def main():
    workers = Workers(max_concurrent=1)
    model = {"source": "torchvision", "name": "resnet18"}
    spec = {"framework": "pytorch", "model": model, "input": {"batchSize": 2}}
    try:
        (estimate,) = await workers.estimate(parse_spec(spec), [resolve_device("t4")])
    finally:
        await workers.close()
    print(estimate.peak.allocated_bytes > 0, "torch" in sys.modules)

asyncio.run(main())
"""


def test_an_estimate_imports_no_framework_in_the_process_that_asks() -> None:
    """PyTorch is imported in the template only (asked in a process of its own)."""
    asked = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, check=True, timeout=300
    )

    assert asked.stdout.split() == ["True", "False"]


@in_module
async def test_a_second_batch_has_the_estimate_of_workers_that_know_nothing(
    torch_workers: Workers,
) -> None:
    """A fork leaves its trace and one of half the batch; the next is the same to the byte."""
    card = resolve_device("a100-sxm4-40gb")
    config = {"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 64}
    heads = {"num_attention_heads": 4, "intermediate_size": 128}
    model = {"source": "huggingface", "name": "b", "task": "masked-lm", "config": config | heads}
    sizes = {"sequenceLength": 64}
    first, second = (
        parse_spec({"framework": "pytorch", "model": model, "input": {**sizes, "batchSize": batch}})
        for batch in (8, 24)
    )
    await torch_workers.estimate(first, [card])
    template = torch_workers.pids()[0]
    await until(lambda: children_of(template) == (), seconds=60.0)

    (found,) = await torch_workers.estimate(second, [card])

    (alone,) = estimate(second, [card], plans_of(None))
    assert (found.least, found.enough) == (alone.least, alone.enough)
    assert (found.peak, found.most) == (alone.peak, alone.most)
