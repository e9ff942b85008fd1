"""The FSDP sample of AWS for EKS and HyperPod: a transformer by its dimensions.

flags of `/fsdp/train.py` -> model, batch, sharding in the draft

Source: the recipe `aws_fsdp`. Not modelled: `--limit_all_gathers`, `--activation_loading_horizon`.
"""

from __future__ import annotations

from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.invocation import Invocation
from admission.detect.recipes import load_recipe
from admission.detect.scripts.by_recipe import family_of, match_of
from admission.detect.scripts.family import Call, Match, source_of_default
from admission.detect.scripts.verbs import (
    number_of,
    put_architecture,
    put_batch,
    put_checkpointing,
    put_parallel,
)

_NAME = "aws_fsdp"
_TYPES = (
    ("gpt_neox", "gpt_neox"),
    ("llama_v2", "llama"),
    ("llama_v3", "llama"),
    ("mixtral", "mixtral"),
    ("mistral", "mistral"),
)
"""Part of `--model_type` -> transformers' type, in the order the script looks for them."""
_FED = 4096
"""Tokens of a sequence from the data loader, whatever the model's width.

`create_streaming_dataloader` in train_utils.py since @187c4f3d; before, `--max_context_width`.
"""
_OWN = "AWS FSDP sample"


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = call.flags
    _model(call, draft)
    put_batch(call, draft, flags.setting("train_batch_size"))
    _length(flags, draft)
    _training(flags, draft)
    _sharding(call, draft)


def _model(call: Call, draft: Draft) -> None:
    flags = call.flags
    flag = flags.setting("model_type")
    text = draft.word("model.name", flag)
    if flag is None or text is None:
        return
    model_type = next((kind for part, kind in _TYPES if part in text), None)
    if model_type is None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=flag.field,
            reason=f"{flag.spelling} {text:.60} is no model that {_OWN} has",
            hint=annotation_hint("model.name"),
        )
        return
    keys: dict[str, Flag | None] = {
        "vocab_size": flags.setting("vocab_size"),
        "hidden_size": flags.setting("hidden_width"),
        "num_hidden_layers": flags.setting("num_layers"),
        "num_attention_heads": flags.setting("num_heads"),
    }
    if model_type != "gpt_neox":
        keys["intermediate_size"] = flags.setting("intermediate_size")
        keys["num_key_value_heads"] = (
            flags.setting("num_key_value_heads") or keys["num_attention_heads"]
        )
    put_architecture(draft, model_type, keys, name=model_type, source=flag.source)
    draft.put("model.task", "causal-lm", source_of_default(_OWN))
    hidden = draft.get("model.config.hidden_size")
    if model_type == "gpt_neox" and hidden is not None:
        source = f"{draft.sources['model.config.hidden_size']} * 4"
        draft.put("model.config.intermediate_size", 4 * hidden, source)
    draft.integer("model.config.max_position_embeddings", flags.get("max_context_width"))


def _length(flags: Flags, draft: Draft) -> None:
    flag = flags.get("max_context_width")
    if not draft.integer("input.sequenceLength", flag):
        draft.put("input.sequenceLength", _FED, source_of_default(_OWN))
        return
    if flag is not None and draft.get("input.sequenceLength") not in (None, _FED):
        draft.doubt(
            f"{flag.field}: since March 2024 the script feeds {_FED} tokens a sequence, whatever "
            f"{flag.spelling} says; its release is not known",
            "input.sequenceLength",
        )


def _training(flags: Flags, draft: Draft) -> None:
    source = source_of_default(_OWN)
    draft.put("training.optimizer", {"name": "adamw"}, source)
    draft.put("training.gradientAccumulationSteps", 1, source)
    draft.put("training.clipGradNorm", True, source)
    draft.put("training.keepOutputs", False, source)
    draft.put("training.useCache", False, source)
    put_checkpointing(draft, flags.setting("activation_checkpointing"))
    offload = flags.setting("offload_activations")
    if offload is not None and offload.is_on:
        draft.put("training.activationOffload", True, offload.source)
    half = flags.setting("bf16")
    if half is not None:
        draft.put("training.precision", "amp-bf16" if half.is_on else "fp32", half.source)
    if half is not None and half.is_on:
        draft.put("parallelism.mixedPrecision", {"param": "bf16", "reduce": "fp32"}, half.source)
    if number_of(flags.get("validation_freq")):
        draft.integer("training.evaluation.batchSize", flags.setting("val_batch_size"))


def _sharding(call: Call, draft: Draft) -> None:
    flags = call.flags
    flag = flags.setting("sharding_strategy")
    text = draft.word("parallelism.strategy", flag)
    if flag is None or text is None:
        return
    if text not in ("full", "hybrid"):
        draft.gap(
            "parallelism.strategy",
            code=ReasonCode.UNSUPPORTED,
            path=flag.field,
            reason=f"{flag.spelling} {text:.60} is none of full, hybrid",
            hint=annotation_hint("parallelism.strategy"),
        )
        return
    put_parallel(draft, "fsdp", source=flag.source)
    if text == "hybrid" and not call.ranks.gaps:
        draft.put("parallelism.shardGroup", call.ranks.per_pod, flag.source)
    offload = flags.setting("cpu_offload")
    if offload is not None and offload.is_on:
        draft.put("parallelism.offload", "parameters", offload.source)


def _match(invocation: Invocation, _flags: Flags) -> Match:
    """Return how sure it is: other scripts are called `/fsdp/train.py` too, with other flags."""
    recipe = load_recipe(_NAME)
    if not recipe.own & invocation.spellings:
        return Match.NO
    return match_of(invocation, recipe)


FAMILY = replace(family_of(_NAME, read), match=_match)
