"""How cards share the work by accelerate's flags: DeepSpeed, FSDP, parallel dimensions.

    Flags -> values of the spec, what is not read

Source: huggingface/accelerate@16cb6eb `src/accelerate/utils/dataclasses.py` DeepSpeedPlugin (by
default stage 2), FullyShardedDataParallelPlugin, `parallelism_config.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from admission.detect.deepspeed import read_deepspeed
from admission.detect.draft import integer_of
from admission.detect.flags import Flag, Flags
from admission.detect.launchers.step import Line

_DEFAULT_STAGE = "2"
_STAGES: Mapping[str, str] = {"0": "ddp", "1": "zero1", "2": "zero2", "3": "zero3"}
_GRADIENTS_ONLY = ("2", "5", "SHARD_GRAD_OP", "HYBRID_SHARD_ZERO2", "FALSE")
_NOT_SHARDED = ("3", "NO_SHARD")
_HYBRID = ("4", "5", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
_DIMENSIONS: Mapping[str, str] = {
    "parallelism_config_tp_size": "tensorParallel",
    "parallelism_config_cp_size": "contextParallel",
}

Values = dict[str, tuple[object, str]]


@dataclass(slots=True)
class Sharing:
    """What the flags decide."""

    values: Values = field(default_factory=dict)
    """Spec path -> value and source."""
    unread: list[tuple[Flag, str]] = field(default_factory=list)
    """What decides memory and is not read, and why."""
    is_hybrid: bool = False


def sharing_of(line: Line, flags: Flags) -> Sharing:
    """Return how cards share the work by *flags*."""
    found = Sharing()
    for name in ("use_megatron_lm", "parallelism_config_sp_size"):
        flag = flags.get(name)
        if flag is not None and flag.is_on and _text(flag) != "1":
            found.unread.append((flag, "is not read yet"))
    if flags.is_on("use_deepspeed"):
        _deepspeed(line, flags, found)
    elif flags.is_on("use_fsdp"):
        _fsdp(flags, found)
    _dimensions(flags, found)
    return found


def _deepspeed(line: Line, flags: Flags, found: Sharing) -> None:
    """Put the ZeRO settings; a file of its own stands for all others."""
    named = flags.get("deepspeed_config_file")
    if named is not None and named.value is not None:
        config = read_deepspeed(line.read_file(named.value.text))
        if config.problem:
            found.unread.append((named, config.problem))
        elif config.unread:
            found.unread.append((named, f"has {', '.join(config.unread)}, which is not read yet"))
        found.values.update(config.values)
        return
    stage, switch = flags.get("zero_stage"), flags.get("use_deepspeed")
    source = stage.source if stage else switch.source if switch else ""
    number = _text(stage) or _DEFAULT_STAGE
    if number not in _STAGES:
        flag = stage or switch
        if flag is not None:
            found.unread.append((flag, "is no ZeRO stage"))
        return
    found.values["parallelism.strategy"] = (_STAGES[number], source)
    found.values["parallelism.implementation"] = ("deepspeed", source)
    for name, offload in (
        ("offload_optimizer_device", "optimizer"),
        ("offload_param_device", "parameters"),
    ):
        device = flags.get(name)
        if device is not None and _text(device) in ("cpu", "nvme"):
            found.values["parallelism.offload"] = (offload, device.source)


def _fsdp(flags: Flags, found: Sharing) -> None:
    switch = flags.get("use_fsdp")
    if switch is None:
        return
    values = found.values
    values["parallelism.strategy"] = ("fsdp", switch.source)
    version = flags.get("fsdp_version")
    if version is not None and _text(version) in ("1", "2"):
        values["parallelism.implementation"] = (f"fsdp{_text(version)}", version.source)
    elif version is None:
        # accelerate 1.15.0 utils/dataclasses.py, FullyShardedDataParallelPlugin.__post_init__
        values["parallelism.implementation"] = ("fsdp1", "default of accelerate")
    for name in ("fsdp_sharding_strategy", "fsdp_reshard_after_forward"):
        sharding = flags.get(name)
        word = _text(sharding).upper()
        if sharding is None:
            continue
        if word in _GRADIENTS_ONLY:
            values["parallelism.reshardAfterForward"] = (False, sharding.source)
        if word in _NOT_SHARDED:
            values["parallelism.strategy"] = ("ddp", sharding.source)
        found.is_hybrid = found.is_hybrid or word in _HYBRID
    offload = flags.get("fsdp_offload_params")
    if offload is not None and offload.is_on:
        values["parallelism.offload"] = ("parameters", offload.source)
    wrap = flags.get("fsdp_auto_wrap_policy")
    if wrap is not None and _text(wrap).upper() == "SIZE_BASED_WRAP":
        values["parallelism.wrap"] = ("size", wrap.source)
    checkpointing = flags.get("fsdp_activation_checkpointing")
    if checkpointing is not None and checkpointing.is_on:
        values["training.gradientCheckpointing"] = ("full", checkpointing.source)


def _dimensions(flags: Flags, found: Sharing) -> None:
    """Put the sizes of accelerate's device mesh."""
    for name, path in _DIMENSIONS.items():
        flag = flags.get(name)
        number = integer_of(_text(flag))
        if flag is not None and number and number > 1:
            found.values[f"parallelism.{path}"] = (number, flag.source)
    shard = flags.get("parallelism_config_dp_shard_size")
    replicate = flags.get("parallelism_config_dp_replicate_size")
    shards, copies = integer_of(_text(shard)) or 1, integer_of(_text(replicate)) or 1
    flag = shard or replicate
    if flag is not None:
        found.values["parallelism.dataParallel"] = (shards * copies, flag.source)
        if copies > 1 and shards > 1:
            found.values["parallelism.shardGroup"] = (shards, flag.source)


def _text(flag: Flag | None) -> str:
    return flag.value.text if flag is not None and flag.value is not None else ""
