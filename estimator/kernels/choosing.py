"""PyTorch's way of choosing among a convolution's plans.

    cuDNN's answer, switches of the run -> Choice

`cudnn.benchmark` off: configurations in the library's order, the first that runs is kept; an
out-of-memory error moves on to the next. On: every plan is built, one workspace of the largest
size is allocated and halved on out-of-memory, all plans that fit are timed and the fastest kept.

Source: `filterEngineConfigs`, `run_single_conv`, `generate_and_filter_plans`, `try_configs` in
PyTorch aten/src/ATen/native/cudnn/Conv_v8.cpp (rbarfinezhadfeli0/pytorch@0edb9997 mirror); errata
compiled into libtorch_cuda of torch 2.15.0 (d0f2af8b), read from its strings.

Two things no answer tells, each a rule that readings support and nothing proves:

* Which plan is the fastest, and which plan a library before 9.8 puts first. A 1x1 filter needs
  no gathering, so the plan with the smallest workspace is taken for it; for every other filter
  the library's own first. Chosen on six gpumemnet runs (torch 2.4, A100, benchmark off), whose
  readings less replayed reserved should be one machine's context: 853 to 1,209 MiB with it, 1,159
  to 7,785 without workspaces, -1,189 to 1,409 with the first plan of 9.26 for every filter.
* That the search's one large workspace does not show: on every fourth timm-a100 case readings
  follow it with a slope of -0.03. It is charged at the high end only.

`python -m tests.bench.rules` prints these figures.

Not modelled: TORCH_CUDNN_USE_HEURISTIC_MODE_B, an errata file of the user's
(CUDNN_ERRATA_JSON_FILE), algorithms of the v7 interface (torch before 2.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from estimator.cudnn import Answer, Direction, Plan, Question
from estimator.device import ComputeCapability
from estimator.notes import Unknown, UnknownCode
from estimator.units import MIB

SWITCHES = (
    "TORCH_CUDNN_USE_HEURISTIC_MODE_B",
    "TORCH_CUDNN_V8_API_DISABLED",
    "CUDNN_ERRATA_JSON_FILE",
    "NVIDIA_TF32_OVERRIDE",
)
"""Variables of a job that change what is chosen, and are not modelled."""

TENSOR_CORE = 0
DOWN_CONVERT_INPUTS = 1
NONDETERMINISTIC = 4
"""`cudnnBackendNumericalNote_t` of cudnn_graph.h."""

SMALLEST = 1 * MIB
"""Benchmarking halves its workspace down to about this, then goes without (assumed)."""


ASKABLE_SINCE = 90800
"""First version that answers about cards that are not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The workspaces of one convolution in the order PyTorch meets them."""

    preferred: int
    """Of the plan that runs if memory allows."""
    alternatives: tuple[int, ...]
    """Of the plans tried after it, in order."""
    least: int
    """Low end: of all plans, if any of them may be the one that runs."""
    most: int
    """High end of what runs."""
    largest: int
    """Of all plans: what a search allocates once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Switches of the run that filter plans."""

    benchmark: bool
    deterministic: bool
    allow_tf32: bool
    limit: int | None = None
    """The largest workspace the framework accepts; None: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Erratum:
    """An engine PyTorch does not use, with the versions of cuDNN it is true for."""

    direction: Direction
    engine: int
    since: int
    until: int | None = None
    """First version without it."""
    capability: ComputeCapability | None = None


ERRATA = (
    _Erratum(direction=Direction.DATA, engine=23, since=80000),
    _Erratum(direction=Direction.FORWARD, engine=23, since=90800, until=91500),
    _Erratum(direction=Direction.FORWARD, engine=58, since=92300, capability=(12, 0)),
    _Erratum(direction=Direction.DATA, engine=63, since=92300, capability=(12, 0)),
    _Erratum(direction=Direction.WEIGHT, engine=63, since=92300, capability=(12, 0)),
    _Erratum(direction=Direction.FORWARD, engine=5, since=92301, until=92400, capability=(8, 6)),
)


def choice_of(
    answer: Answer,
    question: Question,
    switches: Switches,
    *,
    wanted: int | None,
    capability: ComputeCapability,
) -> Choice | None:
    """Return what PyTorch makes of *answer*, None if no plan is left.

    *wanted* is the job's own version; None: not known.
    """
    plans = [
        plan
        for plan in (*answer.instant, *answer.fallback)
        if _is_allowed(plan, question, switches)
        and (switches.limit is None or plan.workspace <= switches.limit)
        and not _has_erratum(plan, question.direction, wanted or answer.version, capability)
    ]
    if not plans:
        return None
    sizes = [plan.workspace for plan in plans]
    is_guess = switches.benchmark or (wanted is not None and wanted < ASKABLE_SINCE)
    first = min(sizes) if is_guess and _is_pointwise(question) else sizes[0]
    return Choice(
        preferred=first,
        alternatives=tuple(sizes),
        least=first if answer.version == wanted and not is_guess else min(sizes),
        most=max(first, sizes[0]),
        largest=max(sizes),
    )


def unknowns_of(environment: Mapping[str, str]) -> tuple[Unknown, ...]:
    """Return which of the job's variables change cuDNN's plans in a way that is not modelled."""
    return tuple(
        Unknown(
            code=UnknownCode.KERNEL,
            path=f"runtime.env.{name}",
            reason="it changes which plans of cuDNN run; they are chosen as without it",
        )
        for name in SWITCHES
        if name in environment
    )


def _is_pointwise(question: Question) -> bool:
    """Return whether the filter covers one pixel."""
    return all(size == 1 for size in question.weight[2:])


def _is_allowed(plan: Plan, question: Question, switches: Switches) -> bool:
    """Return whether PyTorch's filter keeps *plan*."""
    if switches.deterministic and NONDETERMINISTIC in plan.notes:
        return False
    if DOWN_CONVERT_INPUTS in plan.notes:
        return False
    is_full = question.dtype == "float32" and not switches.allow_tf32
    return not (is_full and TENSOR_CORE in plan.notes)


def _has_erratum(
    plan: Plan, direction: Direction, version: int, capability: ComputeCapability
) -> bool:
    return any(
        erratum.direction is direction
        and erratum.engine == plan.engine
        and erratum.since <= version
        and (erratum.until is None or version < erratum.until)
        and erratum.capability in (None, capability)
        for erratum in ERRATA
    )


def falling(sizes: Sequence[int], below: int) -> tuple[int, ...]:
    """Return the sizes at which less memory helps: each smaller than all before and *below*."""
    kept: list[int] = []
    for size in sizes:
        if size < below:
            kept.append(size)
            below = size
    return tuple(kept)


def halves(nbytes: int) -> tuple[int, ...]:
    """Return what a search tries when *nbytes* cannot be had."""
    sizes = []
    while nbytes > SMALLEST:
        nbytes //= 2
        sizes.append(nbytes)
    return (*sizes, 0)
