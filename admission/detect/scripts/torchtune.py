"""torchtune: `tune run RECIPE --config NAME k=v`.

a shipped configuration or a file of one's own, overrides -> the draft

Source: the recipe `torchtune`, the table `torchtune_configs`. Not modelled: what torchtune's own
model code does otherwise than transformers'.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.configs import document_flags
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.invocation import Invocation
from admission.detect.recipes.tables import differs_between_releases, load_table, row_of
from admission.detect.scripts.by_recipe import family_of, with_config
from admission.detect.scripts.family import Call
from admission.detect.scripts.interpolation import interpolated
from admission.detect.scripts.optimizer_classes import put_optimizer_class
from admission.detect.scripts.verbs import (
    number_of,
    put_adapter,
    put_batch,
    put_checkpointing,
    put_choice,
    put_parallel,
    put_quantization,
)

_TABLE = "torchtune_configs"
_PRECISIONS = {"bf16": "bf16", "fp32": "fp32", "fp16": "fp16"}
_MODULES = {
    "q_proj": "q_proj",
    "k_proj": "k_proj",
    "v_proj": "v_proj",
    "output_proj": "o_proj",
}
"""torchtune's attention layers -> transformers' names of them."""
_MLP = ["gate_proj", "up_proj", "down_proj"]
_DECIDING = (
    "model._component_",
    "batch_size",
    "enable_activation_checkpointing",
    "enable_activation_offloading",
    "optimizer._component_",
    "optimizer_in_bwd",
    "tokenizer.max_seq_len",
    "model.lora_rank",
    "model.lora_attn_modules",
    "model.apply_lora_to_mlp",
    "fsdp_cpu_offload",
)
"""What of a configuration moves memory."""
_OBJECTIVES = (("dpo", "dpo"), ("ppo", "ppo"), ("knowledge_distillation", "distill"))


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = _configured(call, draft)
    recipe = _recipe(call.invocation)
    component = _component(flags)
    _model(call, draft, flags, component)
    put_batch(call, draft, flags.setting("batch_size"))
    draft.integer(
        "training.gradientAccumulationSteps", flags.setting("gradient_accumulation_steps")
    )
    draft.integer("input.sequenceLength", flags.setting("tokenizer.max_seq_len"))
    packed = flags.setting("dataset.packed")
    if packed is None or not packed.is_on:
        draft.put("input.padding", "longest", "default of torchtune dataset.packed")
    put_choice(
        draft, "training.precision", flags.setting("dtype"), _PRECISIONS, what="torchtune dtype"
    )
    _training(draft, flags)
    if component is not None and component.startswith(("lora_", "qlora_")):
        _adapter(draft, flags, component)
    _spread(call, draft, flags, is_distributed=recipe.endswith("_distributed"))
    _purpose(call, draft, recipe)


def _recipe(invocation: Invocation) -> str:
    name = invocation.name
    return name.rpartition(".")[2] if invocation.is_module else name.removesuffix(".py")


def _configured(call: Call, draft: Draft) -> Flags:
    """Return the flags over those of the configuration that `--config` names."""
    flag = call.flags.get("config")
    word = flag.value if flag is not None else None
    configs = load_table(_TABLE)["configs"]
    if flag is None or word is None or word.text not in configs:
        return interpolated(with_config(call, draft, flag))
    version = call.invocation.versions.get("torchtune")
    values = row_of(configs[word.text], version)
    if values is None:
        draft.gap(
            "model.name",
            "input.batchSize",
            code=ReasonCode.UNSUPPORTED,
            path=flag.field,
            reason=f"torchtune {version} has no configuration {word.text}",
            hint="put the configuration in a ConfigMap that the pod mounts",
        )
        return call.flags
    if version is None and differs_between_releases(configs[word.text], _DECIDING):
        draft.doubt(
            f"{flag.field}: {word.text} has other values in other releases of torchtune; which one "
            "is installed is not told",
            "input.batchSize",
            "training.gradientCheckpointing",
        )
    told_by = f"torchtune {version or ''}".rstrip() + f" {word.text}"
    return call.flags.over(document_flags(values, told_by=told_by, path=flag.field))


def _component(flags: Flags) -> str | None:
    flag = flags.setting("model._component_", "model")
    word = flag.value if flag is not None else None
    return word.text.rpartition(".")[2] if word is not None and word.is_known else None


def _model(call: Call, draft: Draft, flags: Flags, component: str | None) -> None:
    flag = flags.setting("model._component_", "model")
    if any("model.name" in gap.closed_by for gap in draft.gaps):
        return
    plain = (component or "").removeprefix("q").removeprefix("lora_")
    if (component or "").startswith("qwen"):
        plain = component or ""
    name = load_table(_TABLE)["models"].get(plain)
    if flag is None or name is None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=flag.field if flag is not None else call.origin,
            reason=f"{component or 'no model'} is no model builder that is known",
            hint=annotation_hint("model.name"),
        )
        return
    draft.put("model.source", "huggingface", flag.source)
    draft.put("model.name", name, flag.source)


def _training(draft: Draft, flags: Flags) -> None:
    put_optimizer_class(
        draft,
        flags.setting("optimizer._component_", "optimizer"),
        fused=flags.setting("optimizer.fused"),
    )
    put_checkpointing(draft, flags.setting("enable_activation_checkpointing"))
    _switch(draft, flags.setting("enable_activation_offloading"), "training.activationOffload")
    _switch(draft, flags.setting("compile"), "training.compile")
    in_backward = flags.setting("optimizer_in_bwd")
    if in_backward is not None and in_backward.is_on and draft.get("training.optimizer.name"):
        draft.put("training.optimizer.inBackward", True, in_backward.source)
    loss = flags.setting("loss._component_", "loss")
    text = loss.value.text if loss is not None and loss.value is not None else ""
    if loss is not None and ("Chunked" in text or "LinearCrossEntropy" in text):
        draft.put("training.loss", "chunked", loss.source)
    clip = flags.setting("clip_grad_norm")
    if clip is not None:
        draft.put("training.clipGradNorm", clip.is_on, clip.source)


def _switch(draft: Draft, flag: Flag | None, path: str) -> None:
    if flag is not None:
        draft.put(path, flag.is_on, flag.source)


def _adapter(draft: Draft, flags: Flags, component: str) -> None:
    flag = flags.setting("model._component_", "model")
    source = flag.source if flag is not None else ""
    dora = flags.setting("model.use_dora")
    put_adapter(
        draft,
        "dora" if dora is not None and dora.is_on else "lora",
        source=source,
        rank=flags.setting("model.lora_rank"),
        alpha=flags.setting("model.lora_alpha"),
    )
    modules = flags.setting("model.lora_attn_modules")
    names = [word.text.strip("[]'\" ") for word in modules.values] if modules is not None else []
    if len(names) == 1:
        names = [part.strip("'\" ") for part in names[0].split(",")]
    targets = [_MODULES[name] for name in names if name in _MODULES]
    for key, more in (("model.apply_lora_to_mlp", _MLP), ("model.apply_lora_to_output", _HEAD)):
        switch = flags.setting(key)
        if switch is not None and switch.is_on:
            targets += more
    if targets:
        draft.put("adapter.targetModules", targets, modules.source if modules else source)
    if draft.get("training.precision") in ("bf16", "fp16", "fp32"):
        draft.put("adapter.dtype", draft.get("training.precision"), source)
    quantized = flags.setting("model.quantize_base")
    if component.startswith("qlora_") or (quantized is not None and quantized.is_on):
        put_quantization(draft, 4, source=source)
        draft.put("quantization.doubleQuant", True, source)


_HEAD = ["lm_head"]


def _spread(call: Call, draft: Draft, flags: Flags, *, is_distributed: bool) -> None:
    if not is_distributed:
        put_parallel(draft, "none", source=call.invocation.name)
        return
    put_parallel(draft, "fsdp", source=call.invocation.name, implementation="fsdp2")
    offload = flags.setting("fsdp_cpu_offload")
    if offload is not None and offload.is_on:
        draft.put("parallelism.offload", "parameters", offload.source)
    tensor = flags.setting("tensor_parallel_dim")
    degree = number_of(tensor)
    if tensor is None or not draft.integer("parallelism.tensorParallel", tensor):
        return
    if degree and degree > 1 and not call.ranks.gaps:
        total = call.ranks.total // degree
        draft.put("parallelism.dataParallel", max(1, total), f"{call.ranks.source} / {degree}")


def _purpose(call: Call, draft: Draft, recipe: str) -> None:
    for part, objective in _OBJECTIVES:
        if part in recipe:
            draft.put("objective", objective, call.invocation.name)


FAMILY = family_of("torchtune", read, is_closed=False)
