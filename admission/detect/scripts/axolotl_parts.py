"""Parts of an axolotl configuration: dtype, sharing, losses that hold no logits.

Call (its keys as flags) -> training.precision, parallelism, training.loss in the draft

Source: axolotl v0.18.0 `utils/config/__init__.py` resolve_dtype and choose_device,
`integrations/{liger,cut_cross_entropy}/args.py`, `utils/schemas/fsdp.py`.
"""

from __future__ import annotations

from admission.detect.draft import Draft
from admission.detect.flags import Flag
from admission.detect.scripts.family import Call
from admission.detect.scripts.hf_sharing import (
    put_deepspeed,
    put_fsdp,
    put_fsdp_config,
    put_sharing,
)
from admission.detect.scripts.nested import mapping_of, nested_flags

_LIGER_KERNELS = ("liger_rms_norm", "liger_glu_activation", "liger_swiglu", "liger_rope")


def put_resolved_precision(call: Call, draft: Draft) -> None:
    """Set the dtype the weights are loaded and trained in.

    `bf16: auto` is bf16 on every card that has it; an older card takes fp16, as wide.
    """
    flags = call.flags
    path = "training.precision"
    bf16, fp16 = flags.setting("bf16", "bfloat16"), flags.setting("fp16", "float16")
    if fp16 is not None and fp16.is_on and (bf16 is None or _text(bf16) == "auto"):
        draft.put(path, "fp16", fp16.source)
    elif bf16 is not None and (bf16.is_on or _text(bf16) == "auto"):
        if draft.word(path, bf16) is not None or bf16.value is None:
            draft.put(path, "bf16", bf16.source)
    elif fp16 is not None and fp16.is_on:
        draft.put(path, "fp16", fp16.source)
    else:
        tf32 = flags.setting("tf32")
        is_tf32 = tf32 is not None and tf32.is_on and _text(tf32) != "auto"
        source = tf32.source if tf32 is not None and is_tf32 else "default of axolotl"
        draft.put(path, "tf32" if is_tf32 else "fp32", bf16.source if bf16 else source)


def put_shares(call: Call, draft: Draft) -> None:
    """Set how the cards share the work: DeepSpeed's file, FSDP, or parallel degrees."""
    flags = call.flags
    deepspeed = flags.setting("deepspeed") or mapping_of(flags, "deepspeed")
    shards = flags.setting("fsdp")
    config = nested_flags(flags, "fsdp_config")
    if deepspeed is not None and deepspeed.value is not None and deepspeed.value.text:
        put_deepspeed(call, draft, deepspeed)
    elif shards is not None and shards.values:
        put_fsdp(call, draft, shards)
        _put_version(draft, flags.setting("fsdp_version"))
    elif config.given:
        draft.put("parallelism.strategy", "fsdp", config.given[0].source)
        _put_version(draft, flags.setting("fsdp_version"))
        put_fsdp_config(draft, config)
    else:
        put_sharing(call, draft, has_data_parallel=False)
        _put_device_map(call, draft)
    draft.integer("parallelism.tensorParallel", flags.setting("tensor_parallel_size"))
    draft.integer(
        "parallelism.contextParallel",
        flags.setting("context_parallel_size", "sequence_parallel_degree"),
    )


def put_fused_losses(call: Call, draft: Draft) -> None:
    """Set fused kernels and losses that never hold all logits."""
    flags = call.flags
    for name, path, value in (
        ("liger_fused_linear_cross_entropy", "training.loss", "fused"),
        ("cut_cross_entropy", "training.loss", "fused"),
        ("chunked_cross_entropy", "training.loss", "chunked"),
        *((name, "training.kernels", "liger") for name in _LIGER_KERNELS),
    ):
        flag = flags.setting(name)
        if flag is not None and flag.is_on:
            draft.put(path, value, flag.source)
    compiled = flags.setting("torch_compile")
    if compiled is not None and compiled.is_on and _text(compiled) != "auto":
        draft.put("training.compile", True, compiled.source)


def _put_device_map(call: Call, draft: Draft) -> None:
    """Set the layers' spreading over all cards that one process sees, its default."""
    if call.gpus > 1 and not call.ranks.is_distributed:
        draft.put("parallelism.deviceMap", "auto", "default of axolotl: one process on all GPUs")


def _put_version(draft: Draft, flag: Flag | None) -> None:
    if flag is not None and flag.value is not None and flag.value.text in ("1", "2"):
        draft.put("parallelism.implementation", f"fsdp{flag.value.text}", flag.source)


def _text(flag: Flag) -> str:
    return flag.value.text.lower() if flag.value is not None else ""
