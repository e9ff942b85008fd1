"""How programs on Megatron core spread a job: tensor, pipeline, context and expert parallelism.

flags for the degrees, processes -> parallelism, micro-batch and accumulation in the draft

Source: NVIDIA/Megatron-LM@d98e8a64 megatron/training/arguments.py: replicas are the world over
tensor * pipeline * context; a step accumulates the global batch over micro-batch * replicas.
"""

from __future__ import annotations

from dataclasses import dataclass

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag
from admission.detect.scripts.family import Call
from admission.detect.scripts.verbs import number_of, put_parallel

_DEGREE = "parallelism.dataParallel"
_STEPS = "training.gradientAccumulationSteps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The flags that say how the model is cut. Absent: not cut that way."""

    tensor: Flag | None = None
    pipeline: Flag | None = None
    context: Flag | None = None
    expert: Flag | None = None
    virtual: Flag | None = None
    """Stages of the pipeline that one rank holds."""
    nodes: Flag | None = None
    devices: Flag | None = None
    """GPUs a node; `nodes` and `devices` count where no launcher starts the processes."""
    world: Flag | None = None


def put_split(call: Call, draft: Draft, split: Split, *, strategy: str = "ddp") -> int | None:
    """Set the degrees; return how many replicas there are, or None if that is not known."""
    model = 1
    is_known = True
    for name, flag in (
        ("tensorParallel", split.tensor),
        ("pipelineParallel", split.pipeline),
        ("contextParallel", split.context),
    ):
        if draft.integer(f"parallelism.{name}", flag):
            degree = draft.get(f"parallelism.{name}")
            is_known = is_known and degree is not None
            model *= degree or 1
    draft.integer("parallelism.expertParallel", split.expert)
    _stages(draft, split)
    world, source = _world(call, draft, split)
    put_parallel(draft, strategy, source=source, implementation="megatron")
    if world is None or not is_known:
        return None
    if world % model:
        draft.gap(
            _DEGREE,
            code=ReasonCode.INVALID_SPEC,
            path=call.origin,
            reason=f"{world} processes do not divide by the {model} that one replica takes",
            hint=annotation_hint(_DEGREE),
        )
        return None
    draft.put(_DEGREE, world // model, f"{source} / {model}")
    return world // model


def put_micro_batches(
    draft: Draft, *, micro: Flag | None, total: Flag | None, replicas: int | None
) -> None:
    """Set the micro-batch, and the accumulation from the global batch over *replicas*.

    Without a global batch there is one micro-batch a step: `global_batch_size` is then
    micro-batch * data parallel.
    """
    draft.integer("input.batchSize", micro)
    size = draft.get("input.batchSize")
    batch = number_of(total)
    if total is None:
        draft.put(_STEPS, 1, micro.source if micro is not None else "no global batch")
        return
    if batch is None or not batch:
        draft.integer(_STEPS, total)
        return
    if not isinstance(size, int) or replicas is None:
        return
    steps, rest = divmod(batch, size * replicas)
    if rest:
        draft.warnings.append(
            f"{total.field}: {total.spelling} {batch} does not divide by {size} * {replicas}"
        )
    draft.put(_STEPS, max(1, steps), f"{total.source} / ({size} * {replicas})")
    pipeline = draft.get("parallelism.pipelineParallel")
    if isinstance(pipeline, int) and pipeline > 1:
        draft.put("parallelism.microBatches", max(1, steps), draft.sources[_STEPS])


def put_mixed_bf16(draft: Draft, *, source: str) -> None:
    """Set 16-bit weights with an fp32 copy in the optimizer, as Megatron's `--bf16` keeps them."""
    draft.put("training.precision", "bf16", source)
    draft.put("training.masterWeights", True, source)


def put_recomputation(
    draft: Draft, *, granularity: Flag | None, modules: Flag | None, layers: Flag | None
) -> None:
    """Set recomputation: `full`, `selective` with the parts that are recomputed, or none."""
    flag = granularity or modules or layers
    if flag is None:
        return
    text = granularity.value.text if granularity is not None and granularity.value else ""
    mode = text or ("selective" if modules is not None else "full")
    if mode not in ("full", "selective"):
        draft.gap(
            "training.gradientCheckpointing",
            code=ReasonCode.UNSUPPORTED,
            path=flag.field,
            reason=f"{flag.spelling} {mode:.40} is none of full, selective",
            hint=annotation_hint("training.gradientCheckpointing"),
        )
        return
    document: dict[str, object] = {"mode": mode}
    names = [part for word in modules.values for part in word.text.split()] if modules else []
    if mode == "selective":
        plain = "+".join("".join(c for c in name if c.isalnum() or c == "_") for name in names)
        document["policy"] = plain[:64] or "core_attn"
    draft.put("training.gradientCheckpointing", document, flag.source)


def _stages(draft: Draft, split: Split) -> None:
    pipeline = draft.get("parallelism.pipelineParallel")
    if not isinstance(pipeline, int) or pipeline < 2:
        return
    stages = number_of(split.virtual)
    if split.virtual is not None and stages and stages > 1:
        draft.put("parallelism.virtualStages", stages, split.virtual.source)
        draft.put("parallelism.schedule", "interleaved", split.virtual.source)


def _world(call: Call, draft: Draft, split: Split) -> tuple[int | None, str]:
    """Return how many processes there are: the launcher's word, else the program's own."""
    ranks = call.ranks
    if ranks.is_distributed or ranks.gaps:
        return (None if ranks.gaps else ranks.total), ranks.source
    if split.world is not None:
        draft.integer("parallelism.worldSize", split.world)
        return draft.get("parallelism.worldSize"), split.world.source
    if split.devices is None:
        return ranks.total, ranks.source
    devices = call.gpus if _is_all(split.devices) else _counted(draft, split.devices)
    nodes = 1 if split.nodes is None else _counted(draft, split.nodes)
    if devices is None or nodes is None:
        return None, split.devices.source
    return nodes * devices, f"{split.devices.source} * {nodes}"


def _is_all(flag: Flag) -> bool:
    return flag.value is not None and flag.value.text in ("-1", "auto")


def _counted(draft: Draft, flag: Flag) -> int | None:
    """Return the number of *flag*; without one the number of replicas is a gap."""
    number = number_of(flag)
    if not number:
        text = flag.value.text if flag.value is not None else ""
        draft.gap(
            _DEGREE,
            code=ReasonCode.INVALID_SPEC
            if flag.value is None or flag.value.is_known
            else flag.value.code,
            path=flag.field,
            reason=f"{flag.spelling} {text:.60} is no number from 1",
            hint=annotation_hint(_DEGREE),
        )
        return None
    return number
