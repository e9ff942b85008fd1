"""Megatron-LM and its DeepSpeed variant: pretrain_gpt.py, pretrain_bert.py, pretrain_t5.py.

flags -> the draft

Source: the recipe `megatron`. Not modelled: mixture-of-experts layer patterns, multi-token
prediction, batches that grow.
"""

from __future__ import annotations

from admission.detect.draft import Draft
from admission.detect.flags import Flags
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.megatron_model import put_model
from admission.detect.scripts.megatron_split import (
    Split,
    put_micro_batches,
    put_mixed_bf16,
    put_recomputation,
    put_split,
)
from admission.detect.scripts.verbs import number_of

_NAME = "Megatron-LM"
_STAGES = "parallelism.virtualStages"


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = call.flags
    put_model(call, draft)
    _split(call, draft, flags)
    draft.integer("input.sequenceLength", flags.get("seq_length", "encoder_seq_length"))
    _training(draft, flags)
    ramp = flags.get("rampup_batch_size")
    if ramp is not None:
        draft.warnings.append(f"{ramp.field}: {ramp.spelling}: read at its last size")


def _split(call: Call, draft: Draft, flags: Flags) -> None:
    split = Split(
        tensor=flags.get("tensor_model_parallel_size", "model_parallel_size"),
        pipeline=flags.get("pipeline_model_parallel_size"),
        context=flags.get("context_parallel_size"),
        expert=flags.get("expert_model_parallel_size"),
        virtual=flags.get("num_virtual_stages_per_pipeline_rank"),
    )
    replicas = put_split(call, draft, split, strategy=_strategy(flags))
    _stages(draft, flags)
    put_micro_batches(
        draft,
        micro=flags.get("micro_batch_size", "batch_size"),
        total=flags.get("global_batch_size"),
        replicas=replicas,
    )
    for name, path in (
        ("sequence_parallel", "parallelism.sequenceParallel"),
        ("use_distributed_optimizer", "parallelism.distributedOptimizer"),
    ):
        flag = flags.get(name)
        if flag is not None:
            draft.put(path, flag.is_on, flag.source)
    offload = flags.get("optimizer_cpu_offload", "cpu_optimizer")
    if offload is not None and offload.is_on:
        draft.put("parallelism.offload", "optimizer", offload.source)
    stage = flags.get("zero_stage")
    if stage is not None:
        draft.put("parallelism.implementation", "deepspeed", stage.source)


def _strategy(flags: Flags) -> str:
    if flags.is_on("use_megatron_fsdp", "use_custom_fsdp", "use_torch_fsdp2"):
        return "fsdp"
    stage = number_of(flags.get("zero_stage"))
    return f"zero{stage}" if stage in (1, 2, 3) else "ddp"


def _stages(draft: Draft, flags: Flags) -> None:
    """Set the virtual stages from the layers that one of them has."""
    flag = flags.get("num_layers_per_virtual_pipeline_stage")
    each, layers = number_of(flag), number_of(flags.get("num_layers"))
    pipeline = draft.get("parallelism.pipelineParallel")
    if flag is None or not each or not layers or not isinstance(pipeline, int) or pipeline < 2:
        return
    stages = layers // pipeline // each
    if stages > 1:
        draft.put(_STAGES, stages, flag.source)
        draft.put("parallelism.schedule", "interleaved", flag.source)


def _training(draft: Draft, flags: Flags) -> None:
    half = flags.get("bf16")
    if half is not None:
        put_mixed_bf16(draft, source=half.source)
    elif (fp16 := flags.get("fp16")) is not None:
        draft.put("training.precision", "fp16", fp16.source)
        draft.put("training.masterWeights", True, fp16.source)
    else:
        draft.put("training.precision", "fp32", source_of_default(_NAME))
    float8 = flags.get("fp8_format")
    text = draft.word("training.float8", float8)
    if float8 is not None and text is not None:
        draft.put("training.float8", {"recipe": text[:64]}, float8.source)
    optimizer = flags.setting("optimizer")
    name = draft.word("training.optimizer", optimizer)
    if optimizer is not None and name is not None:
        draft.put("training.optimizer", {"name": name.lower()[:64]}, optimizer.source)
    _recomputation(draft, flags)
    flash = flags.get("use_flash_attn")
    if flash is not None and draft.get("model.name") is not None:
        draft.put("model.attention", "flash_attention_2", flash.source)
    clip = flags.setting("clip_grad")
    if clip is not None and clip.value is not None:
        draft.put("training.clipGradNorm", bool(clip.value.text.strip("0.")), clip.source)


def _recomputation(draft: Draft, flags: Flags) -> None:
    whole = flags.get("checkpoint_activations", "deepspeed_activation_checkpointing")
    granularity = flags.get("recompute_granularity")
    part = flags.get("recompute_activations")
    if granularity is not None:
        put_recomputation(
            draft, granularity=granularity, modules=flags.get("recompute_modules"), layers=None
        )
    elif part is not None:
        document = {"mode": "selective", "policy": "core_attn"}
        draft.put("training.gradientCheckpointing", document, part.source)
    elif whole is not None:
        draft.put("training.gradientCheckpointing", "full", whole.source)
    else:
        draft.put("training.gradientCheckpointing", "none", source_of_default(_NAME))


FAMILY = family_of("megatron", read, is_closed=False)
