"""`accelerate launch`: processes, mixed precision, DeepSpeed and FSDP by flags.

Source: accelerate 1.15.0 `commands/launch.py`. A `--config_file` is not read yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from admission.codes import ReasonCode
from admission.detect.draft import SHARDED_HINT, Gap
from admission.detect.flags import Flags, Options, Takes
from admission.detect.invocation import Launch, Spawn
from admission.detect.launchers.step import Line, Step, split_options
from admission.detect.words import Word, words
from admission.values import Finding

_SWITCHES = words(
    "cpu multi_gpu tpu ipex use_xpu use_deepspeed use_fsdp use_megatron_lm quiet debug module "
    "no_python same_network use_parallelism_config enable_cpu_affinity dynamo_use_fullgraph "
    "dynamo_use_dynamic dynamo_use_regional_compilation"
)
_VALUES = words(
    "config_file num_processes num_machines machine_rank mixed_precision main_process_ip "
    "main_process_port rdzv_backend rdzv_conf max_restarts monitor_interval role log_dir tee "
    "num_cpu_threads_per_process gpu_ids dynamo_backend dynamo_mode zero_stage "
    "deepspeed_config_file offload_optimizer_device offload_param_device "
    "offload_optimizer_nvme_path offload_param_nvme_path gradient_accumulation_steps "
    "gradient_clipping zero3_init_flag zero3_save_16bit_model deepspeed_hostfile "
    "deepspeed_exclusion_filter deepspeed_inclusion_filter deepspeed_multinode_launcher "
    "deepspeed_moe_layer_cls_names fsdp_version fsdp_offload_params fsdp_min_num_params "
    "fsdp_sharding_strategy fsdp_reshard_after_forward fsdp_auto_wrap_policy "
    "fsdp_transformer_layer_cls_to_wrap fsdp_backward_prefetch fsdp_state_dict_type "
    "fsdp_forward_prefetch fsdp_use_orig_params fsdp_cpu_ram_efficient_loading "
    "fsdp_sync_module_states fsdp_activation_checkpointing megatron_lm_tp_degree "
    "megatron_lm_pp_degree megatron_lm_num_micro_batches megatron_lm_sequence_parallelism "
    "megatron_lm_recompute_activations megatron_lm_use_distributed_optimizer "
    "megatron_lm_gradient_clipping fp8_backend downcast_bf16"
)

OPTIONS = Options(
    names={
        **dict.fromkeys(_SWITCHES, Takes.NOTHING),
        **dict.fromkeys(_VALUES, Takes.ONE),
    },
    short={"m": "module", "q": "quiet"},
)
_DECIDING = ("multi_gpu", "use_deepspeed", "use_fsdp", "config_file", "use_megatron_lm")
"""With one of these, the default configuration does not choose how cards share the work."""
_DEFAULT_FILE = "accelerate's default configuration inside the image, if there is one, is not seen"
_DEFAULT_STAGE = "2"
_GRADIENTS_ONLY = ("2", "SHARD_GRAD_OP")
_NOT_SHARDED = ("3", "NO_SHARD")
_UNREAD = (
    ("config_file", "parallelism.strategy", "names a file that is not read yet"),
    ("deepspeed_config_file", "parallelism.strategy", "names a file that is not read yet"),
    ("use_megatron_lm", "parallelism.strategy", "is not read yet"),
    ("use_parallelism_config", "parallelism.strategy", "is not read yet"),
)


def unwrap(line: Line) -> Step | None:
    """Return the script `accelerate launch` starts, and what its flags decide."""
    if len(line.words) < 2 or line.words[1].text != "launch":
        return None
    inner = Line(words=line.words[1:], where=line.where, path=line.path)
    flags, rest = split_options(inner, OPTIONS)
    return _launched(flags, rest)


def unwrap_module(line: Line) -> Step | None:
    """Return the script of `python -m accelerate.commands.launch`."""
    flags, rest = split_options(line, OPTIONS)
    return _launched(flags, rest)


def _launched(flags: Flags, rest: tuple[Word, ...]) -> Step | None:
    if not rest:
        return None
    launch = Launch(
        launcher="accelerate launch",
        is_distributed=True,
        spawn=Spawn.ALL,
        total=flags.get("num_processes"),
        nodes=flags.get("num_machines"),
        precision=flags.get("mixed_precision"),
        parallelism={**_deepspeed(flags), **_fsdp(flags)},
        gaps=tuple(_gaps(flags)),
        is_on_cpu=flags.has("cpu"),
        unseen="" if flags.has(*_DECIDING) else _DEFAULT_FILE,
    )
    if flags.has("no_python"):
        return Step(rest=rest, launch=launch)
    return Step(rest=rest[1:], program=rest[0], is_module=flags.has("module"), launch=launch)


def _deepspeed(flags: Flags) -> dict[str, tuple[object, str]]:
    """Return the ZeRO settings that are written as flags; without a stage it is 2."""
    if not flags.is_on("use_deepspeed") or flags.has("deepspeed_config_file"):
        return {}
    stage = flags.get("zero_stage")
    switch = flags.get("use_deepspeed")
    source = stage.source if stage else switch.source if switch else ""
    number = stage.value.text if stage and stage.value else _DEFAULT_STAGE
    strategy = {"0": "ddp", "1": "zero1", "2": "zero2", "3": "zero3"}.get(number)
    if strategy is None:
        return {}
    found: dict[str, tuple[object, str]] = {
        "parallelism.strategy": (strategy, source),
        "parallelism.implementation": ("deepspeed", source),
    }
    for name, offload in (
        ("offload_optimizer_device", "optimizer"),
        ("offload_param_device", "parameters"),
    ):
        flag = flags.get(name)
        if flag is not None and flag.value is not None and flag.value.text in ("cpu", "nvme"):
            found["parallelism.offload"] = (offload, flag.source)
    return found


def _fsdp(flags: Flags) -> dict[str, tuple[object, str]]:
    """Return the FSDP settings that are written as flags."""
    switch = flags.get("use_fsdp")
    if switch is None or not switch.is_on:
        return {}
    found: dict[str, tuple[object, str]] = {"parallelism.strategy": ("fsdp", switch.source)}
    version = flags.get("fsdp_version")
    if version is not None and version.value is not None and version.value.text in ("1", "2"):
        found["parallelism.implementation"] = (f"fsdp{version.value.text}", version.source)
    sharding = flags.get("fsdp_sharding_strategy")
    word = sharding.value.text.upper() if sharding and sharding.value else ""
    if sharding is not None and word in _GRADIENTS_ONLY:
        found["parallelism.reshardAfterForward"] = (False, sharding.source)
    if sharding is not None and word in _NOT_SHARDED:
        found["parallelism.strategy"] = ("ddp", sharding.source)
    offload = flags.get("fsdp_offload_params")
    if offload is not None and offload.is_on:
        found["parallelism.offload"] = ("parameters", offload.source)
    wrap = flags.get("fsdp_auto_wrap_policy")
    if wrap is not None and wrap.value is not None and wrap.value.text == "SIZE_BASED_WRAP":
        found["parallelism.wrap"] = ("size", wrap.source)
    if flags.is_on("fsdp_activation_checkpointing"):
        flag = flags.get("fsdp_activation_checkpointing")
        found["training.gradientCheckpointing"] = ("full", flag.source if flag else "")
    return found


def _gaps(flags: Flags) -> Iterator[Gap]:
    """Yield what decides memory and is not read from flags."""
    for name, spec_path, reason in _UNREAD:
        flag = flags.get(name)
        if flag is None or not flag.is_on:
            continue
        yield Gap(
            finding=Finding(
                code=ReasonCode.UNSUPPORTED,
                path=flag.field,
                reason=f"accelerate's {flag.spelling} {reason}",
                hint=SHARDED_HINT,
            ),
            closed_by=(spec_path,),
        )
