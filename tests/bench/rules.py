"""What the chosen rules and margins rest on: `python -m tests.bench.rules`.

    cases, cuDNN -> tables on the screen

Where no answer of cuDNN decides, a rule was chosen among a few by published readings, and where
one margin holds for all it rests on them too. This prints those choices again, on the rows that
data/fitted.yaml names, so that a docstring's figure can be looked up. Imports PyTorch.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import linear_regression, median, quantiles

from estimator.allocators.pytorch import pytorch_allocator
from estimator.allocators.settings import caching_settings
from estimator.catalog import resolve_device
from estimator.cudnn import Answer, PlanSource, Question, card_of
from estimator.cudnn.client import Plans
from estimator.cudnn.folders import library_folders
from estimator.cudnn.layered import Layers
from estimator.device import Device
from estimator.errors import EstimatorError
from estimator.frontends import load
from estimator.kernels import End, lower, questions_in, workspaces_of
from estimator.kernels.choosing import Choice, Switches, choice_of
from estimator.kernels.convolution import Chooser, ConvolutionScratch
from estimator.kernels.layout_bound import bounded_choice, transformed_bytes
from estimator.need import lower_for, need_of
from estimator.pipeline import overheads_for
from estimator.replay import replay
from estimator.spec import JobSpec, parse_spec
from estimator.trace import Trace
from estimator.traits import traits_of
from estimator.units import GIB, MIB
from estimator.workers.cudnn_supervisor import CudnnSupervisor
from estimator.workers.limits import Limits
from tests.bench.accuracy.cases import Case, read_cases, read_outcomes
from tests.bench.accuracy.cases import End as Ended
from tests.bench.accuracy.scoring import counts_as_used
from tests.bench.rules_last_batch import print_last_batch

PATIENCE_SECONDS = 3600.0
JUMP = 0.15
"""A reading this much above its tensors says nothing of a rule: see the twenty worst."""
SMALLEST = int(1.2 * GIB)
"""Below it the context decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """One published run, traced."""

    name: str
    spec: JobSpec
    device: Device
    trace: Trace
    reading: int
    """Less the driver's reservation where the reading holds it."""

    @property
    def beside(self) -> int:
        """Return what the process is expected to hold beside its allocator."""
        return overheads_for(self.spec, self.device, self.trace).total.expected

    def reserved(self, workspaces: ConvolutionScratch, end: End = End.EXPECTED) -> int:
        """Return what the allocator reserves with these workspaces."""
        environment = self.spec.runtime.env
        program = lower(
            self.trace, self.device, end=end, environment=environment, workspaces=workspaces
        )
        return replay(program, pytorch_allocator(caching_settings(environment)[0])).reserved


def traced(cases: Sequence[Case]) -> Iterator[Traced]:
    """Yield the runs of *cases* that can be traced."""
    frontend = load("pytorch")
    for case in cases:
        spec, device = parse_spec(case.spec), resolve_device(case.gpu)
        try:
            trace = frontend.trace_job(spec, traits=traits_of(device))
        except EstimatorError as error:
            print(f"left out: {case.id}: {error.message[:80]}", file=sys.stderr)
            continue
        reading = case.reading.nbytes - (device.reservation_bytes if counts_as_used(case) else 0)
        yield Traced(name=case.id, spec=spec, device=device, trace=trace, reading=reading)


def nothing(question: Question, switches: Switches, device: Device) -> Choice:
    """Return no workspace at all."""
    return Choice(preferred=0, alternatives=(), least=0, most=0, largest=0)


def tiles(question: Question, switches: Switches, device: Device) -> Choice:
    """Return Winograd's tiles for every filter they apply to."""
    size = transformed_bytes(question)
    return Choice(preferred=size, alternatives=(), least=0, most=size, largest=size)


def first_plans(run: Traced, plans: PlanSource) -> Chooser:
    """Return what takes the library's own first plan for every filter."""
    answers = answers_of(run, plans)

    def choose(question: Question, switches: Switches, device: Device) -> Choice:
        answer = answers.get(question)
        chosen = answer and choice_of(
            answer,
            question,
            replace(switches, benchmark=False),
            wanted=answer.version,
            capability=device.compute_capability,
        )
        return chosen or bounded_choice(question, switches, device)

    return choose


def with_search(run: Traced, plans: PlanSource) -> Chooser:
    """Return the first plans, and no more at the high end than a search's one workspace."""
    choose = first_plans(run, plans)

    def pinned(question: Question, switches: Switches, device: Device) -> Choice:
        choice = choose(question, switches, device)
        return replace(choice, least=choice.preferred, most=choice.preferred)

    return pinned


def answers_of(run: Traced, plans: PlanSource) -> Mapping[Question, Answer]:
    """Return cuDNN's answers about *run*; it remembers what it was asked."""
    card = card_of(run.device)
    assert card is not None
    questions = questions_in(run.trace)
    pairs = zip(questions, plans.ask(questions, card, wanted=None), strict=True)
    return {question: answer for question, answer in pairs if answer is not None}


def print_first(runs: Sequence[Traced], plans: PlanSource) -> None:
    """Print what is left beside the allocator under each rule: it should be one machine's own."""
    print("\nbenchmark off, cuDNN 9.1: reading less reserved, MiB")
    for run in runs:
        rule = workspaces_of(run.trace, run.device, plans)
        left = {
            "nothing": run.reserved(ConvolutionScratch(nothing)),
            "first everywhere": run.reserved(ConvolutionScratch(first_plans(run, plans))),
            "the rule": run.reserved(rule),
        }
        words = ", ".join(f"{name} {(run.reading - size) // MIB}" for name, size in left.items())
        print(f"  {run.name:28} {words}; expected {run.beside // MIB}")


def print_search(runs: Sequence[Traced], plans: PlanSource) -> None:
    """Print how far readings follow a search's workspace, and the error of each rule."""
    without: list[float] = []
    searched: list[float] = []
    ruled: list[float] = []
    shares: list[tuple[float, float]] = []
    for run in runs:
        rest = run.reading - run.beside
        bare = run.reserved(ConvolutionScratch(nothing))
        search = run.reserved(ConvolutionScratch(with_search(run, plans)), End.HIGH)
        rule = run.reserved(workspaces_of(run.trace, run.device, plans))
        for errors, size in ((without, bare), (searched, search), (ruled, rule)):
            errors.append(abs(size - rest) / run.reading)
        if abs(rest - bare) < JUMP * run.reading:
            shares.append(((search - bare) / run.reading, (rest - bare) / run.reading))
    slope = linear_regression(*zip(*shares, strict=True)).slope
    print(f"\nbenchmark on, {len(runs)} runs: slope of readings over a search {slope:.2f}")
    for name, errors in (("nothing", without), ("search", searched), ("the rule", ruled)):
        print(f"  {name:10} median |e| {median(errors):.2%}")


def print_margin(runs: Sequence[Traced], plans: PlanSource) -> None:
    """Print the 95th percentile of what readings reserve over what is replayed."""
    ratios = []
    for run in runs:
        size = run.reserved(workspaces_of(run.trace, run.device, plans))
        if size > SMALLEST:
            ratios.append((run.reading - run.beside) / size)
    high = quantiles(ratios, n=20, method="inclusive")[-1]
    print(f"\nmargin of most: 95th percentile {high - 1:.1%} of {len(ratios)} runs")


def print_older(runs: Sequence[Traced]) -> None:
    """Print the error of each way to charge PyTorch before 2.0."""
    print(f"\nPyTorch before 2.0, {len(runs)} runs")
    rules: dict[str, Callable[[Question, Switches, Device], Choice]] = {
        "nothing": nothing,
        "layout copies": bounded_choice,
        "tiles": tiles,
    }
    for name, rule in rules.items():
        errors = [
            abs(run.reserved(ConvolutionScratch(rule)) + run.beside - run.reading) / run.reading
            for run in runs
        ]
        print(f"  {name:14} median |e| {median(errors):.2%}")


def print_unasked(runs: Sequence[Traced], plans: PlanSource) -> None:
    """Print how much surer a bound is than it may be, against cuDNN's answers."""
    least, most = [], []
    for run in runs:
        bounded = need_of(lower_for(run.trace, run.device, run.spec.runtime))
        asked = need_of(lower_for(run.trace, run.device, run.spec.runtime, plans))
        least.append(bounded.least / asked.least - 1)
        most.append(asked.free.reserved / bounded.most.reserved - 1)
    print(f"\nbounded instead of asked, {len(runs)} runs: worst")
    print(f"  least {max(least):.1%} above that of the asked, peak {max(most):.1%} above most")


def print_caps(runs: Mapping[str, Traced], plans: PlanSource) -> None:
    """Print capped runs on the wrong side of the smallest cap found, and the nearest others."""
    ran, died = [], []
    for outcome in read_outcomes():
        run = next((each for name, each in runs.items() if outcome.id.startswith(name)), None)
        if run is None or outcome.cap_bytes is None:
            continue
        need = need_of(lower_for(run.trace, run.device, run.spec.runtime, plans))
        if outcome.end is Ended.RAN:
            ran.append((outcome.cap_bytes / need.least - 1, outcome.id))
        else:
            died.append((outcome.cap_bytes / need.enough - 1, outcome.id))
    print(f"\ncapped runs: cap over the smallest cap found; {len(ran)} ran, {len(died)} died")
    for share, name in sorted(ran)[:3]:
        print(f"  ran  {share:+.1%} {name}")
    for share, name in sorted(died, reverse=True)[:4]:
        print(f"  died {share:+.1%} {name}")


async def main() -> None:
    """Trace the rows, ask the installed cuDNN, print the tables."""
    cases = read_cases()
    groups = {name: [case for case in cases if case.group == name] for name in NAMES}
    convolving = {"mobilenet_v2", "resnet50", "vgg16"}
    timm = list(traced(groups["timm-a100"][3::4]))
    twelfth = list(traced(groups["timm-a100"][1::12]))
    measured = list(
        traced([c for c in groups["gpumemnet"] if c.spec["model"]["name"] in convolving])
    )
    older = list(traced(groups["schedtune"][0::3]))
    capped = list(traced(groups["xmem"]))
    supervisor = CudnnSupervisor(library_folders(sys.path, os.environ)[0], limits=Limits())
    connection = supervisor.connect()
    if connection is None:
        raise SystemExit("cuDNN's process does not start")
    plans = Layers([Plans(connection, limit_seconds=PATIENCE_SECONDS)])

    def work() -> None:
        print_first(measured, plans)
        print_search(timm, plans)
        print_margin(twelfth, plans)
        print_older(older)
        print_unasked([*twelfth, *measured], plans)
        print_caps({run.name: run for run in capped}, plans)
        print_last_batch()

    try:
        await asyncio.to_thread(work)
    finally:
        await supervisor.close()


NAMES = ("timm-a100", "gpumemnet", "schedtune", "xmem")


if __name__ == "__main__":
    asyncio.run(main())
