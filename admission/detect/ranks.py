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
_CHECKPOINTING = "training.gradientCheckpointing"
"""A launcher that wraps the model does it whether the script asks for it or not."""
_SHARDED = ("fsdp", "zero1", "zero2", "zero3")
_OPERATOR_KINDS = ("PyTorchJob", "PaddleJob", "HyperPodPyTorchJob", "TrainJob")
"""Kinds whose operator starts torchrun with one process a GPU on every replica."""
_LAUNCHED = "MPIJob"
"""Its launcher has a pod of its own, even where the object has one template for all."""
_PROCESSES = dict.fromkeys(("torchrun", "hyperpodrun", "tune run"), "PET_NPROC_PER_NODE")
_NODES = {
    "torchrun": "PET_NNODES",
    "hyperpodrun": "PET_NNODES",
    "tune run": "PET_NNODES",
    "bpslaunch": "DMLC_NUM_WORKER",
}
"""Variables that a launcher reads where its flags say nothing."""
_SLOTS = "OMPI_MCA_orte_set_default_slots"
"""Processes that Open MPI starts on a host when nobody says how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """The processes of a job."""

    per_pod: int
    total: int
    is_distributed: bool
    """They form one process group."""
    source: str
    gaps: tuple[Gap, ...] = ()
    """Why the numbers may be others."""
    counts: tuple[Gap, ...] = ()
    """Those of them that are numbers in the object which nobody has filled in."""
    started: int = 1
    """Pods whose processes the program's own pod may start: more than one for a launcher's."""
    replicas: int = 1
    """Pods that run the same program side by side."""


def ranks_of(invocation: Invocation, unit: Unit, workload: Workload) -> Ranks:
    """Return how many processes run, by the launcher's flags, its defaults and the replicas."""
    launch = invocation.launch
    gaps: list[Gap] = []
    gpus = visible_gpus(invocation.variables, unit.gpus)
    is_operator = workload.ref.kind in _OPERATOR_KINDS
    others = _started_together(unit, workload)
    per_pod = _number(launch.processes, gaps, every=gpus)
    if per_pod is None:
        per_pod = _of_environment(_PROCESSES.get(launch.launcher), invocation, every=gpus)
    if per_pod is None and others and launch.is_distributed:
        per_pod = _of_environment(_SLOTS, invocation, every=gpus) or gpus
    if per_pod is None:
        takes_all = launch.spawn is Spawn.ALL or (is_operator and launch.is_distributed)
        per_pod = gpus if takes_all else 1
    nodes = _number(launch.nodes, gaps, every=1)
    is_counted_here = nodes is None
    if nodes is None:
        nodes = _of_environment(_NODES.get(launch.launcher), invocation, every=1)
    pods = sum(other.replicas for other in others)
    total = _number(launch.total, gaps, every=gpus)
    if total is not None and launch.is_spread and launch.processes is not None:
        total = max(total, per_pod)
    elif total is not None:
        spread = -(-total // unit.gpus) if launch.is_spread else 1
        per_pod = max(1, -(-total // (nodes or pods or spread)))
    elif is_operator and is_counted_here and (nodes is None or nodes == _replicas(workload)):
        total = sum(other.replicas * _processes(other, unit, per_pod) for other in workload.units)
    elif nodes is not None:
        total = nodes * per_pod
    elif pods and launch.is_distributed:
        total = pods * per_pod
    else:
        total = per_pod
    counts = _open_counts(launch, unit, (*others, unit), is_operator=is_operator)
    if per_pod > unit.gpus and unit.are_gpus_known:
        gaps.append(_crowded(launch, per_pod, unit))
    flag = launch.processes or launch.total
    return Ranks(
        per_pod=per_pod,
        total=max(total, per_pod),
        is_distributed=launch.is_distributed or (is_operator and total > 1),
        source=flag.source if flag is not None else f"{launch.launcher} on {_gpus(unit.gpus)}",
        gaps=(*gaps, *counts),
        counts=counts,
        started=max(1, pods),
        replicas=max(1, unit.replicas),
    )


def _started_together(unit: Unit, workload: Workload) -> tuple[Unit, ...]:
    """Return the units whose processes one launcher starts; none if it starts its own only."""
    path = unit.program.path
    found = tuple(other for other in workload.units if other.program.path == path)
    is_other = path != unit.container_path or workload.ref.kind == _LAUNCHED
    return found if len(found) > 1 or is_other else ()


def _replicas(workload: Workload) -> int:
    return sum(unit.replicas for unit in workload.units)


def _open_counts(
    launch: Launch, unit: Unit, others: tuple[Unit, ...], *, is_operator: bool
) -> tuple[Gap, ...]:
    """Return why the number of processes is not known where the object's own numbers are not."""
    found = []
    takes_all = launch.spawn is Spawn.ALL or launch.is_distributed
    if not unit.are_gpus_known and takes_all and launch.processes is None:
        found.append((f"{unit.container_path}.resources", "the number of GPUs is not filled in"))
    spans_pods = is_operator or len(others) > 1
    if spans_pods and launch.nodes is None and not all(one.are_replicas_known for one in others):
        found.append((unit.template, "the number of replicas is not filled in"))
    if launch.total is not None:
        return ()
    return tuple(
        Gap(
            finding=Finding(
                code=ReasonCode.TEMPLATE,
                path=path,
                reason=reason,
                hint="render the template before it is applied",
            ),
            closed_by=(_DEGREE,),
        )
        for path, reason in found
    )


def apply_parallelism(draft: Draft, invocation: Invocation, ranks: Ranks) -> None:
    """Set the strategy and its degree, unless the script has set them or a gap leaves them open."""
    for path, (value, source) in invocation.launch.parallelism.items():
        if draft.get(path) is None or (path == _CHECKPOINTING and draft.get(path) == "none"):
            draft.put(path, value, source)
    strategy = draft.get("parallelism.strategy")
    is_left_open = any(path.endswith("Parallel") for gap in draft.gaps for path in gap.closed_by)
    gaps = tuple(gap for gap in ranks.gaps if gap.finding.code == ReasonCode.UNSUPPORTED)
    is_sharded = strategy in _SHARDED or draft.get("parallelism.implementation") == "megatron"
    if is_sharded and len(gaps) < len(ranks.gaps):
        _leave_shards_open(draft, tuple(gap for gap in ranks.gaps if gap not in gaps))
    else:
        _leave_replicas_open(draft, ranks.counts)
        gaps = tuple(gap for gap in ranks.gaps if gap not in ranks.counts)
    draft.gaps.extend((*invocation.launch.gaps, *gaps))
    _put_unseen(draft, invocation.launch, is_shared=ranks.total > 1 or bool(ranks.counts))
    is_open = any("parallelism.strategy" in gap.closed_by for gap in draft.gaps)
    if strategy is None and (is_open or (draft.is_open and ranks.total > 1)):
        return
    if strategy is None:
        is_spread = ranks.total > 1 or bool(ranks.counts)
        strategy = "ddp" if ranks.is_distributed and is_spread else "none"
        draft.put("parallelism.strategy", strategy, ranks.source)
    is_counted = len(gaps) == len(ranks.gaps) and not is_left_open
    if strategy not in ("none", "dp") and draft.get(_DEGREE) is None and is_counted:
        draft.put(_DEGREE, ranks.total, ranks.source)
    if invocation.launch.shards_in_node and is_counted and 1 < ranks.per_pod < ranks.total:
        draft.put("parallelism.shardGroup", ranks.per_pod, ranks.source)


def _put_unseen(draft: Draft, launch: Launch, *, is_shared: bool) -> None:
    """Note that how cards share the work is not seen: one card alone can share nothing."""
    for gap in launch.gaps_if_shared:
        if is_shared:
            draft.gaps.append(gap)
        else:
            draft.doubt(f"{gap.finding.path}: {gap.finding.reason}", "parallelism.strategy")


def _leave_shards_open(draft: Draft, gaps: tuple[Gap, ...]) -> None:
    """Leave the number of shards out: a job is judged as if one card held it all, and warned of.

    What cannot be resolved is how many cards share the state, never what each of them computes.
    """
    for gap in gaps:
        draft.doubt(
            f"{gap.finding.path}: {gap.finding.reason}; the need is that of a card that shares "
            "its state with no other",
            _DEGREE,
        )


def _leave_replicas_open(draft: Draft, gaps: tuple[Gap, ...]) -> None:
    """Leave the number of replicas out: each card holds the same, however many there are."""
    for gap in gaps:
        draft.warnings.append(f"{gap.finding.path}: {gap.finding.reason}")


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


def _of_environment(name: str | None, invocation: Invocation, *, every: int) -> int | None:
    """Return the number in the variable *name*; None if there is none, or it is a range.

    An operator that writes a range begins with as many pods as the object says.
    """
    words = invocation.variables.get(name, ()) if name is not None else ()
    single = tuple(word for word in words if ":" not in word.text)
    return next(_parsed_all(single, every=every), None)


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
