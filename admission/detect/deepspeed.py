"""A DeepSpeed configuration as values of the spec.

    JSON text -> DeepSpeed, or why it cannot be read

Strict JSON, though DeepSpeed reads hjson: a comment is named. `"auto"` is nothing: who starts
DeepSpeed fills it in.
Source: microsoft/DeepSpeed@38327e0 `deepspeed/runtime/config.py`, `runtime/zero/config.py`
(defaults: stage 0, buckets of 5e8 elements, prefetch of 5e7), `runtime/zero/offload_config.py`;
with bf16 or fp16 the optimizer holds an fp32 copy of its share (`runtime/zero/stage_1_and_2.py`).
Not modelled: `activation_checkpointing`, which only says how a model that asks for it does it;
pipelines; NVMe's own buffers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.files import File

MAX_TEXT = 256 << 10
_STRATEGIES = ("ddp", "zero1", "zero2", "zero3")
_BUCKETS = {
    "reduce_bucket_size": "parallelism.zero.reduceBucketElements",
    "allgather_bucket_size": "parallelism.zero.allgatherBucketElements",
    "stage3_prefetch_bucket_size": "parallelism.zero.prefetchElements",
}
_COUNTS = {
    "train_micro_batch_size_per_gpu": "input.batchSize",
    "gradient_accumulation_steps": "training.gradientAccumulationSteps",
}
_UNREAD = ("zero_quantized_weights", "zero_quantized_gradients")
OPTIMIZER = "training.optimizer"
MAX_COUNT = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepSpeed:
    """What a configuration says, or why it says nothing."""

    values: Mapping[str, tuple[object, str]] = field(default_factory=dict)
    """Spec path -> value and where it stands."""
    train_batch_size: tuple[int, str] | None = None
    """Of all processes and micro-batches together, and where it stands."""
    unread: tuple[str, ...] = ()
    """Keys that move memory and are not read."""
    problem: str = ""
    """Completes `FILE …`."""


def read_deepspeed(file: File) -> DeepSpeed:
    """Return what the configuration in *file* says."""
    if file.text is None:
        return DeepSpeed(problem=file.problem)
    if len(file.text) > MAX_TEXT:
        return DeepSpeed(problem=f"is longer than {MAX_TEXT} characters")
    try:
        document = json.loads(file.text)
    except (ValueError, RecursionError) as error:
        return DeepSpeed(problem=f"is no JSON: {error!s:.120}")
    if not isinstance(document, dict):
        return DeepSpeed(problem="is no mapping of keys to values")
    return deepspeed_of(document, source=file.source)


def deepspeed_of(document: Mapping[str, Any], *, source: str) -> DeepSpeed:
    """Return what a configuration that is read already says; *source* names it."""
    zero = _part(document, "zero_optimization")
    values = dict(_values(document, zero, source))
    unread = [f"zero_optimization.{key}" for key in _UNREAD if zero.get(key) is True]
    stage = zero.get("stage", 0)
    if _count(stage, least=0) not in range(len(_STRATEGIES)):
        unread.append("zero_optimization.stage")
    total = _count(document.get("train_batch_size"))
    return DeepSpeed(
        values=values,
        train_batch_size=(total, f"{source} train_batch_size") if total else None,
        unread=tuple(unread),
    )


def put_deepspeed(draft: Draft, found: DeepSpeed, *, path: str, world: int | None) -> None:
    """Set what *found* says and is not set yet; *path* is the field that names it.

    An optimizer that the configuration names is built by DeepSpeed, whatever the flags say.

    *world*: processes that share the batch, if that is known.
    """
    if found.problem or found.unread:
        reason = found.problem or f"has {', '.join(found.unread)}, which is not read yet"
        code = ReasonCode.DOCUMENT if found.problem else ReasonCode.UNSUPPORTED
        draft.gap(
            "parallelism.strategy",
            code=code,
            path=path,
            reason=f"the DeepSpeed configuration {reason}",
            hint=annotation_hint("parallelism.strategy"),
        )
    for spec_path, (value, source) in found.values.items():
        if draft.get(spec_path) is None or spec_path == OPTIMIZER:
            draft.put(spec_path, value, source)
    _put_share(draft, found, world)


def _put_share(draft: Draft, found: DeepSpeed, world: int | None) -> None:
    """Set the batch or the accumulation that follows from the batch of all."""
    if found.train_batch_size is None or world is None:
        return
    total, source = found.train_batch_size
    batch = draft.get("input.batchSize")
    steps = draft.get("training.gradientAccumulationSteps")
    if batch is None and total % (world * (steps or 1)) == 0:
        draft.put("input.batchSize", total // (world * (steps or 1)), f"{source} / {world}")
        if steps is None:
            draft.put("training.gradientAccumulationSteps", 1, source)
    elif isinstance(batch, int) and steps is None and total % (world * batch) == 0:
        draft.put("training.gradientAccumulationSteps", total // (world * batch), source)


def _values(
    document: Mapping[str, Any], zero: Mapping[str, Any], source: str
) -> Iterator[tuple[str, tuple[object, str]]]:
    stage = _count(zero.get("stage", 0), least=0)
    if stage in range(len(_STRATEGIES)):
        said = f"{source} zero_optimization.stage"
        yield "parallelism.strategy", (_STRATEGIES[stage or 0], said)
        yield "parallelism.implementation", ("deepspeed", said)
    if stage:
        yield from _of_zero(zero, source)
    for key, path in _COUNTS.items():
        number = _count(document.get(key))
        if number:
            yield path, (number, f"{source} {key}")
    for key in ("bf16", "bfloat16", "fp16"):
        if _part(document, key).get("enabled") is True:
            said = f"{source} {key}.enabled"
            yield "training.precision", ("fp16" if key == "fp16" else "bf16", said)
            yield "training.masterWeights", (True, said)
            break
    yield from _optimizer(document, source)
    clipping = document.get("gradient_clipping")
    if isinstance(clipping, int | float) and not isinstance(clipping, bool) and clipping > 0:
        yield "training.clipGradNorm", (True, f"{source} gradient_clipping")
    split = _count(_part(document, "tensor_parallel").get("autotp_size"))
    if split and split > 1:
        yield "parallelism.tensorParallel", (split, f"{source} tensor_parallel.autotp_size")


def _of_zero(zero: Mapping[str, Any], source: str) -> Iterator[tuple[str, tuple[object, str]]]:
    """Yield what the part `zero_optimization` says beside its stage."""
    said = f"{source} zero_optimization"
    for key, offload in (("offload_param", "parameters"), ("offload_optimizer", "optimizer")):
        device = _part(zero, key).get("device")
        if device in ("cpu", "nvme"):
            yield "parallelism.offload", (offload, f"{said}.{key}")
            break
    else:
        if zero.get("cpu_offload") is True:
            yield "parallelism.offload", ("optimizer", f"{said}.cpu_offload")
    for key, path in _BUCKETS.items():
        number = _count(zero.get(key))
        if number:
            yield path, (number, f"{said}.{key}")
    for key in ("zero_hpz_partition_size", "mics_shard_size"):
        number = _count(zero.get(key))
        if number and number > 1:
            yield "parallelism.shardGroup", (number, f"{said}.{key}")


def _optimizer(
    document: Mapping[str, Any], source: str
) -> Iterator[tuple[str, tuple[object, str]]]:
    part = _part(document, "optimizer")
    name = part.get("type")
    if not isinstance(name, str) or name == "auto":
        return
    plain = name.lower()
    if plain == "adam" and _part(part, "params").get("adam_w_mode", True) is not False:
        plain = "adamw"
    plain = "".join(char for char in plain if char.isalnum() and char.isascii())[:64]
    # DeepSpeed's own Adam updates all tensors in one kernel (`runtime/engine.py`).
    is_fused = plain in ("adam", "adamw") and _part(part, "params").get("torch_adam") is not True
    value = {"name": plain or "other"} | ({"fused": True} if is_fused else {})
    yield OPTIMIZER, (value, f"{source} optimizer.type")


def _part(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = document.get(key)
    return found if isinstance(found, Mapping) else {}


def _count(value: object, *, least: int = 1) -> int | None:
    """Return *value* as a whole number (`5e8` is one), or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not least <= value <= MAX_COUNT or value != int(value):
        return None
    return int(value)
