"""How many processes share a job, and how.

Launch, Unit, Workload -> Ranks -> parallelism in the draft
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from admission.codes import ReasonCode
from admission.detect.draft import Draft, Gap, annotation_hint, integer_of
from admission.detect.flags import Flag
from admission.detect.invocation import Invocation, Launch, Spawn
from admission.detect.words import Variables, Word
from admission.values import Finding, Unit, Workload

_EVERY_GPU = ("gpu", "auto", "cuda")
VISIBLE = "CUDA_VISIBLE_DEVICES"
_NO_DEVICE = ("", "-1", "none", "void", "NoDevFiles")
_DEGREE = "parallelism.dataParallel"
_OPERATOR_KINDS = ("PyTorchJob",)
"""Kinds whose operator starts torchrun with one process a GPU on every replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """The processes of a job."""

    per_pod: int
    total: int
    is_distributed: bool
    """They form one process group."""
    source: str
    gaps: tuple[Gap, ...] = ()


def ranks_of(invocation: Invocation, unit: Unit, workload: Workload) -> Ranks:
    """Return how many processes run, by the launcher's flags, its defaults and the replicas."""
    launch = invocation.launch
    gaps: list[Gap] = []
    gpus = visible_gpus(invocation.variables, unit.gpus)
    is_operator = workload.ref.kind in _OPERATOR_KINDS
    per_pod = _number(launch.processes, gaps, every=gpus)
    if per_pod is None and launch.launcher == "torchrun":
        per_pod = _of_environment("PET_NPROC_PER_NODE", invocation.variables, every=gpus)
    if per_pod is None:
        takes_all = launch.spawn is Spawn.ALL or (is_operator and launch.is_distributed)
        per_pod = gpus if takes_all else 1
    nodes = _number(launch.nodes, gaps, every=1)
    if nodes is None and launch.launcher == "torchrun":
        nodes = _of_environment("PET_NNODES", invocation.variables, every=1)
    total = _number(launch.total, gaps, every=gpus)
    if total is not None:
        per_pod = max(1, total // (nodes or 1))
    elif nodes is not None:
        total = nodes * per_pod
    elif is_operator:
        total = sum(other.replicas * _processes(other, unit, per_pod) for other in workload.units)
    else:
        total = per_pod
    if per_pod > unit.gpus:
        gaps.append(_crowded(launch, per_pod, unit))
    flag = launch.processes or launch.total
    return Ranks(
        per_pod=per_pod,
        total=max(total, per_pod),
        is_distributed=launch.is_distributed or (is_operator and total > 1),
        source=flag.source if flag is not None else f"{launch.launcher} on {_gpus(unit.gpus)}",
        gaps=tuple(gaps),
    )


def apply_parallelism(draft: Draft, invocation: Invocation, ranks: Ranks) -> None:
    """Set the strategy and its degree, unless the script has set them or a gap leaves them open."""
    for path, (value, source) in invocation.launch.parallelism.items():
        if draft.get(path) is None:
            draft.put(path, value, source)
    draft.gaps.extend((*invocation.launch.gaps, *ranks.gaps))
    strategy = draft.get("parallelism.strategy")
    is_open = any("parallelism.strategy" in gap.closed_by for gap in draft.gaps)
    if strategy is None and is_open:
        return
    if strategy is None:
        strategy = "ddp" if ranks.is_distributed and ranks.total > 1 else "none"
        draft.put("parallelism.strategy", strategy, ranks.source)
    if strategy not in ("none", "dp") and draft.get(_DEGREE) is None:
        draft.put(_DEGREE, ranks.total, ranks.source)


def visible_gpus(variables: Variables, gpus: int) -> int:
    """Return how many of *gpus* a process sees: `CUDA_VISIBLE_DEVICES` may hide some."""
    for word in variables.get(VISIBLE, ()):
        if word.is_known:
            return max(1, min(gpus, len(_visible(word))))
    return gpus


def hides_all_gpus(variables: Variables) -> bool:
    """Return whether `CUDA_VISIBLE_DEVICES` is set, and names no device."""
    return any(word.is_known and not _visible(word) for word in variables.get(VISIBLE, ()))


def _visible(word: Word) -> list[str]:
    """Return the devices named before the first that there cannot be: CUDA stops there."""
    names = [name.strip() for name in word.text.split(",")]
    stop = next((at for at, name in enumerate(names) if name in _NO_DEVICE), len(names))
    return names[:stop]


def _processes(other: Unit, unit: Unit, per_pod: int) -> int:
    """Return how many processes the pods of *other* run, as those of *unit* run *per_pod*."""
    return per_pod if other.gpus == unit.gpus else min(other.gpus, max(per_pod, 1))


def _number(flag: Flag | None, gaps: list[Gap], *, every: int) -> int | None:
    """Return the number of *flag*: `gpu` is *every*, a range its smallest."""
    if flag is None or flag.value is None:
        return None
    word = flag.value
    found = _parsed(word, every=every)
    if found is None:
        gaps.append(
            Gap(
                finding=Finding(
                    code=word.code if not word.is_known else ReasonCode.UNSUPPORTED,
                    path=flag.field,
                    reason=f"{flag.spelling} {word.text} is no number of processes",
                    hint=annotation_hint(_DEGREE),
                ),
                closed_by=(_DEGREE,),
            )
        )
    return found


def _of_environment(name: str, variables: Variables, *, every: int) -> int | None:
    return next(_parsed_all(variables.get(name, ()), every=every), None)


def _parsed_all(words: tuple[Word, ...], *, every: int) -> Iterator[int]:
    for word in words:
        number = _parsed(word, every=every)
        if number is not None:
            yield number


def _parsed(word: Word, *, every: int) -> int | None:
    if "nvidia-smi" in word.text:
        return every
    if not word.is_known:
        return None
    text = word.text.partition(":")[0]
    if text in _EVERY_GPU:
        return every
    number = integer_of(text)
    return number if number is not None and 1 <= number <= 1 << 20 else None


def _gpus(number: int) -> str:
    return f"{number} GPU" if number == 1 else f"{number} GPUs"


def _crowded(launch: Launch, per_pod: int, unit: Unit) -> Gap:
    flag = launch.processes or launch.total
    return Gap(
        finding=Finding(
            code=ReasonCode.UNSUPPORTED,
            path=flag.field if flag is not None else unit.container_path,
            reason=(
                f"{per_pod} processes on {_gpus(unit.gpus)}: "
                "several processes on one card are not modelled"
            ),
            hint="start one process a GPU",
        ),
        closed_by=(_DEGREE,),
    )
