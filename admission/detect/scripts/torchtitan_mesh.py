"""torchtitan's device mesh: replicate, shard, tensor, pipeline, context, expert.

flags, processes -> parallelism in the draft

Source: pytorch/torchtitan@73a0e697 torchtitan/distributed/parallel_dims.py. The shards of one
model lie on the shard and context axes together.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.family import Call
from admission.detect.scripts.verbs import number_of, put_parallel

_DEGREE = "parallelism.dataParallel"
_AXES = (
    ("tensorParallel", ("parallelism.tensor_parallel_degree", "training.tensor_parallel_degree")),
    (
        "pipelineParallel",
        ("parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"),
    ),
    (
        "contextParallel",
        ("parallelism.context_parallel_degree", "experimental.context_parallel_degree"),
    ),
)
_REPLICATE = (
    "parallelism.data_parallel_replicate_degree",
    "training.data_parallel_replicate_degree",
)
_SHARD = (
    "parallelism.data_parallel_shard_degree",
    "training.data_parallel_shard_degree",
    "training.data_parallel_degree",
)


def put_mesh(call: Call, draft: Draft, flags: Flags) -> int | None:
    """Set the degrees; return how many replicas there are, or None if that is not known."""
    model = 1
    for name, keys in _AXES:
        flag = flags.get(*keys)
        if draft.integer(f"parallelism.{name}", flag):
            model *= draft.get(f"parallelism.{name}") or 1
    draft.integer("parallelism.expertParallel", flags.get("parallelism.expert_parallel_degree"))
    if (draft.get("parallelism.tensorParallel") or 1) > 1:
        draft.put("parallelism.sequenceParallel", True, "default of torchtitan")
    replicate, shard = _given(flags, _REPLICATE), _given(flags, _SHARD)
    copies, shards = number_of(replicate) or 1, number_of(shard)
    source = shard.source if shard is not None else call.ranks.source
    is_sharded = shards is None or shards > 1
    if call.ranks.total > 1 or call.ranks.gaps:
        put_parallel(
            draft,
            "fsdp" if is_sharded else "ddp",
            source=source,
            implementation="fsdp2" if is_sharded else "",
        )
    offload = flags.get("training.enable_cpu_offload")
    if offload is not None and offload.is_on:
        draft.put("parallelism.offload", "parameters", offload.source)
    if call.ranks.gaps:
        return None
    return _replicas(call, draft, model=model, copies=copies, source=source)


def _replicas(call: Call, draft: Draft, *, model: int, copies: int, source: str) -> int | None:
    total = call.ranks.total
    if total % model:
        draft.gap(
            _DEGREE,
            code=ReasonCode.INVALID_SPEC,
            path=call.origin,
            reason=f"{total} processes do not divide by the {model} that one replica takes",
            hint=annotation_hint(_DEGREE),
        )
        return None
    replicas = total // model
    if total > 1:
        draft.put(_DEGREE, replicas, source)
    if copies > 1 and replicas > copies and not replicas % copies:
        draft.put("parallelism.shardGroup", replicas // copies, source)
    return replicas


def _given(flags: Flags, keys: tuple[str, ...]) -> Flag | None:
    return flags.get(*keys) or flags.setting(keys[0])
