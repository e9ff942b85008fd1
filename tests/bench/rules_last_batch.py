"""How much more a last smaller batch takes: part of `python -m tests.bench.rules`.

    networks, shares of a batch -> a table on the screen, the margin it gives

The size of a data set is in no spec, so the last batch of an epoch is not traced. Here it is: two
full batches, a smaller one and the first of the next epoch, replayed with all the memory there
is, with expandable segments, and under a cap as wide as `enough`.
Runs by itself too: `python -m tests.bench.rules_last_batch`. Workspaces are bounded: no library
is asked, so that the table is the same on every machine. Imports PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from statistics import quantiles
from typing import Any

from estimator.allocators.pytorch import PyTorchPolicy, pytorch_allocator
from estimator.calibration import Bound, bounded, handed_over
from estimator.catalog import resolve_device
from estimator.device import Device
from estimator.frontends.pytorch import trace_job, tracing
from estimator.frontends.pytorch.build.job import Shapes
from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.training import Trainer
from estimator.need import Lowered, enough_of, lower_for
from estimator.program import Program
from estimator.replay import Replay, replay
from estimator.spec import JobSpec, parse_spec
from estimator.trace import Method, Trace
from estimator.traits import traits_of
from estimator.units import MIB

CARD = "A100-SXM4-80GB"
SHARES = ((9, 10), (1, 2), (1, 10))
FULL_STEPS = 2
WAYS = (("fp32", "adamw"), ("amp-bf16", "sgd"))
IMAGES = (
    "resnet50",
    "vgg16",
    "mobilenet_v2",
    "efficientnet_b0",
    "densenet121",
    "convnext_tiny",
    "vit_b_16",
)
TEXTS = (
    ("bert-base-uncased", "masked-lm", 32, 128),
    ("roberta-base", "sequence-classification", 32, 128),
    ("gpt2", "causal-lm", 8, 512),
    ("t5-small", "seq2seq-lm", 16, 256),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What one last batch did, in bytes of segments."""

    name: str
    last: int
    reserved: int
    """Peak of two full batches."""
    more: int
    """Reserved above that once the smaller batch and a full one after it have run."""
    more_allocated: int
    more_expandable: int
    """The same with expandable segments."""
    handed: int
    """The largest tensor a step hands over to the next."""
    full_runs: bool
    """Whether four full batches complete under `enough` of two: its margin and no more."""
    runs: bool
    """Whether the smaller batch, and a full one after it, do."""
    runs_beside: bool
    """Whether they do with what is handed over beside that, as `enough` is."""


def specs() -> Iterator[JobSpec]:
    """Yield the jobs of the table."""
    models: list[tuple[dict[str, Any], dict[str, int]]] = [
        ({"source": "torchvision", "name": name}, {"batchSize": 64}) for name in IMAGES
    ]
    models += [
        (
            {"source": "huggingface", "name": name, "task": task},
            {"batchSize": batch, "sequenceLength": length},
        )
        for name, task, batch, length in TEXTS
    ]
    for model, batch in models:
        for precision, optimizer in WAYS:
            training = {"precision": precision, "optimizer": {"name": optimizer}}
            yield parse_spec(
                {"framework": "pytorch", "model": model, "input": batch, "training": training}
            )


def stepped(spec: JobSpec, device: Device, batches: Sequence[int]) -> Trace:
    """Return the trace of *spec* whose step *n* has the n-th of *batches*."""

    class Epoch(Trainer):
        def run(self) -> None:
            self._load()
            for step, batch in enumerate(batches, start=1):
                length = self.spec.input.sequence_length
                self.shapes = Shapes(batch_size=batch, sequence_length=length)
                self._step(step)

    with replaced((tracing, "Trainer", Epoch)):
        return trace_job(spec, traits=traits_of(device))


def growths(spec: JobSpec) -> list[Growth]:
    """Return what each share of a batch does to the job."""
    return list(_growths(spec, resolve_device(CARD)))


def _growths(spec: JobSpec, device: Device) -> Iterator[Growth]:
    batch = spec.input.batch_size
    full = lower_for(stepped(spec, device, (batch,) * 4), device, spec.runtime)
    two = replace(full, program=_until(full.program, FULL_STEPS))
    before = replay(two.program, two.allocator())
    cap = bounded(enough_of(two, before), Method.TRACE, Bound.ENOUGH)
    expandable = _expandable(two).reserved
    for numerator, denominator in SHARES:
        last = max(1, batch * numerator // denominator)
        trace = stepped(spec, device, (batch, batch, last, batch))
        lowered = lower_for(trace, device, spec.runtime)
        after, handed = replay(lowered.program, lowered.allocator()), handed_over(trace)
        yield Growth(
            name=f"{spec.model.name} {spec.training.precision} {spec.training.optimizer.name}",
            last=last,
            reserved=before.reserved,
            more=after.reserved - before.reserved,
            more_allocated=after.allocated - before.allocated,
            more_expandable=_expandable(lowered).reserved - expandable,
            handed=handed,
            full_runs=full.completes(capacity=cap),
            runs=lowered.completes(capacity=cap),
            runs_beside=lowered.completes(capacity=cap + handed),
        )


def _until(program: Program, step: int) -> Program:
    """Return *program* up to the end of *step*."""
    later = (i for i, at in enumerate(program.places) if program.place_table[at].step > step)
    end = next(later, len(program.places))
    return replace(
        program,
        kinds=program.kinds[:end],
        ids=program.ids[:end],
        places=program.places[:end],
    )


def _expandable(lowered: Lowered) -> Replay:
    assert isinstance(lowered.policy, PyTorchPolicy)
    settings = replace(lowered.policy.settings, expandable_segments=True)
    return replay(lowered.program, pytorch_allocator(settings))


def print_last_batch() -> None:
    """Print the table, and what of it handed-over tensors do not explain."""
    with ProcessPoolExecutor(max_workers=2, mp_context=get_context("spawn")) as pool:
        rows = [row for found in pool.map(growths, specs()) for row in found]
    print(f"\na last smaller batch, {len(rows)} runs, MiB: reserved, and what came on top")
    for row in rows:
        words = {
            "more": row.more,
            "allocated": row.more_allocated,
            "expandable": row.more_expandable,
            "handed over": row.handed,
        }
        text = ", ".join(f"{name} {size // MIB}" for name, size in words.items())
        capped = "" if row.runs else ", dies under the cap"
        print(f"  {row.name:36} {row.last:3} {row.reserved // MIB:6} {text}{capped}")
    _print_shares("more reserved", [row.more / row.reserved for row in rows])
    rest = [max(0, row.more - row.handed) / row.reserved for row in rows]
    _print_shares("beyond what is handed over", rest)
    rest = [max(0, row.more_expandable - row.handed) / row.reserved for row in rows]
    _print_shares("with expandable segments", rest)
    _print_shares("more allocated", [row.more_allocated / row.reserved for row in rows])
    print(
        f"  under the margin of enough: {sum(row.full_runs for row in rows)} complete with four "
        f"full batches, {sum(row.runs for row in rows)} with a smaller one, "
        f"{sum(row.runs_beside for row in rows)} with it and what is handed over beside"
    )


def _print_shares(title: str, shares: Sequence[float]) -> None:
    """Print the 95th percentile and the worst of *shares* of what two full batches reserve."""
    high = quantiles(shares, n=20, method="inclusive")[-1]
    print(f"  {title}: 95th percentile {high:.1%}, worst {max(shares):.1%}")


if __name__ == "__main__":
    print_last_batch()
