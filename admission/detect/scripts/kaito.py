"""KAITO's tuning job: `kaito-tuning --preset phi-4 --method qlora [--config FILE]`.

    preset, method, training_config.yaml -> JobSpec

The command stands for what a Workspace asks its controller for; nobody types it.
Source: the recipe `kaito.yaml`. Which release of the image runs is not told, so what SFTTrainer
takes by default there (checkpointing, bf16 beside the dtype) is left out, with a doubt.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.codes import ReasonCode
from admission.detect.configs import defaults_of
from admission.detect.draft import Draft
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.adapters import LoraNames, put_bitsandbytes, put_lora
from admission.detect.scripts.by_recipe import family_of, with_config
from admission.detect.scripts.family import Call
from admission.detect.scripts.hf_arguments import put_training_arguments, with_trainer
from admission.detect.scripts.hf_precision import put_precision
from admission.detect.scripts.nested import nested_flags

_PRESETS: Mapping[str, str] = {
    "deepseek-r1-distill-llama-8b": "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "deepseek-r1-distill-qwen-14b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B",
    "falcon-40b": "tiiuae/falcon-40b",
    "falcon-40b-instruct": "tiiuae/falcon-40b-instruct",
    "falcon-7b": "tiiuae/falcon-7b",
    "falcon-7b-instruct": "tiiuae/falcon-7b-instruct",
    "gemma-3-27b-instruct": "google/gemma-3-27b-it",
    "gemma-3-4b-instruct": "google/gemma-3-4b-it",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "llama-3.1-8b-instruct": "meta-llama/Llama-3.1-8B-Instruct",
    "llama-3.3-70b-instruct": "meta-llama/Llama-3.3-70B-Instruct",
    "mistral-7b": "mistralai/Mistral-7B-v0.3",
    "mistral-7b-instruct": "mistralai/Mistral-7B-Instruct-v0.3",
    "mistral-7b-v0.3": "mistralai/Mistral-7B-v0.3",
    "phi-2": "microsoft/phi-2",
    "phi-3-medium-128k-instruct": "microsoft/Phi-3-medium-128k-instruct",
    "phi-3-medium-4k-instruct": "microsoft/Phi-3-medium-4k-instruct",
    "phi-3-mini-128k-instruct": "microsoft/Phi-3-mini-128k-instruct",
    "phi-3-mini-4k-instruct": "microsoft/Phi-3-mini-4k-instruct",
    "phi-3.5-mini-instruct": "microsoft/Phi-3.5-mini-instruct",
    "phi-4": "microsoft/phi-4",
    "phi-4-mini-instruct": "microsoft/Phi-4-mini-instruct",
    "qwen2.5-coder-32b-instruct": "Qwen/Qwen2.5-Coder-32B-Instruct",
    "qwen2.5-coder-7b-instruct": "Qwen/Qwen2.5-Coder-7B-Instruct",
}
"""Preset -> Hub id: kaito-project/kaito@056b8280 presets/workspace/models/supported_models.yaml."""
_LENGTH = 1024
"""SFTTrainer's, in every release that KAITO has used."""
_LORA = LoraNames(
    rank="r", alpha="lora_alpha", dropout="lora_dropout", targets="target_modules",
    saved="modules_to_save",
)  # fmt: skip
_PHI3 = ["k_proj", "q_proj", "v_proj", "o_proj", "gate_proj", "down_proj", "up_proj"]
"""What its controller sets for presets of Phi-3: preset_tuning.go DEFAULT_TARGET_MODULES."""
_QLORA = {
    "load_in_4bit": True,
    "bnb_4bit_quant_type": "nf4",
    "bnb_4bit_compute_dtype": "bfloat16",
    "bnb_4bit_use_double_quant": True,
}
_SECTIONS = ("ModelConfig", "QuantizationConfig", "LoraConfig", "TrainingArguments")


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    preset, method = call.flags.get("preset"), call.flags.get("method")
    _put_preset(call, draft, preset)
    config = call.flags.get("config")
    flags = with_config(call, draft, config)
    sections = _sections(call, flags, method)
    call = with_trainer(call, sections)
    draft.put("objective", "sft", "KAITO")
    length = sections.setting("max_length", "max_seq_length")
    if not draft.integer("input.sequenceLength", length):
        draft.put("input.sequenceLength", _LENGTH, "default of SFTTrainer")
    draft.put("input.padding", "longest", "default of SFTTrainer")
    put_precision(call, draft, is_trainer=True)
    put_training_arguments(call, draft)
    if not sections.has("gradient_checkpointing"):
        draft.document["training"].pop("gradientCheckpointing", None)
        draft.sources.pop("training.gradientCheckpointing", None)
        draft.doubt(
            f"{call.origin}: which release of KAITO's tuning image runs is not told, nor whether "
            "it checkpoints gradients",
            "training.gradientCheckpointing",
        )
    draft.put("training.emptyCache", {"everySteps": 1}, "KAITO fine_tuning.py")
    source = method.source if method is not None else "KAITO"
    put_lora(draft, sections, source=source, names=_LORA)
    name = preset.value.text.lower() if preset is not None and preset.value is not None else ""
    if not sections.has("target_modules") and name.startswith("phi-3"):
        draft.put("adapter.targetModules", _PHI3, "KAITO DEFAULT_TARGET_MODULES")
    put_bitsandbytes(draft, sections, prepare="kbit", nested="bnb_4bit_use_double_quant")
    if draft.get("runtime.env.PYTORCH_CUDA_ALLOC_CONF") is None:
        draft.put("runtime.env.PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", "KAITO")


def _put_preset(call: Call, draft: Draft, flag: Flag | None) -> None:
    name = draft.word("model.name", flag)
    known = _PRESETS.get(name.lower()) if name is not None else None
    if known is not None and flag is not None:
        draft.put("model.source", "huggingface", flag.source)
        draft.put("model.name", known, flag.source)
    elif flag is None or name is not None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=flag.field if flag is not None else call.origin,
            reason=f"{name or 'no preset':.80} is no preset of KAITO's that is known",
            hint="name the Hub id in the annotation vramgate.dev/spec: "
            "model: {source: huggingface, name: ORG/MODEL}",
        )


def _sections(call: Call, flags: Flags, method: Flag | None) -> Flags:
    """Return what the sections of the configuration say, over KAITO's own for the method.

    A configuration that the Workspace names takes the place of KAITO's own as a whole.
    """
    found = Flags()
    for section in _SECTIONS:
        found = found.over(nested_flags(flags, f"training_config.{section}"))
    if call.flags.has("config"):
        return found
    told_by = "default of kaito"
    values = {name.partition(".")[2]: flag for name, flag in flags.defaults.items()}
    is_qlora = method is not None and method.value is not None and method.value.text == "qlora"
    quantised = defaults_of(_QLORA, told_by=f"{told_by} qlora") if is_qlora else {}
    return Flags(defaults={**values, **quantised})


FAMILY = family_of("kaito", read)
