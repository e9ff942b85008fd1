"""Megatron's model flags as a transformers configuration.

`--num-layers --hidden-size --swiglu …` -> model in the draft

Source: the recipe `megatron`; `validate_args` there for what follows from other flags. Where
Megatron mixes what no type of transformers does, the type with the same weights is taken.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.verbs import number_of, put_architecture
from admission.detect.scripts.vocabulary import put_hub_vocabulary

_NAME = "Megatron-LM"
_KINDS = (("bert", "bert"), ("t5", "t5"))
_CONFIG = "model.config"


def put_model(call: Call, draft: Draft) -> None:
    """Set the architecture, or say which dimension is missing."""
    flags = call.flags
    layers = flags.get("num_layers", "encoder_num_layers")
    needed = {
        "num_layers": layers,
        "hidden_size": flags.get("hidden_size"),
        "num_attention_heads": flags.get("num_attention_heads"),
    }
    missing = [name for name, flag in needed.items() if flag is None]
    checkpoint = flags.get("use_checkpoint_args")
    if missing or checkpoint is not None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=checkpoint.field if checkpoint is not None else call.origin,
            reason="the dimensions are in the checkpoint (--use-checkpoint-args)"
            if checkpoint is not None
            else f"{call.invocation.name} is given no --{missing[0].replace('_', '-')}",
            hint=annotation_hint("model.name"),
        )
        return
    kind = _kind(call, flags)
    writer = _gpt2 if kind == "gpt2" else _t5 if kind == "t5" else _common
    writer(draft, flags, kind, layers)
    _vocabulary(call, draft, flags)


def _kind(call: Call, flags: Flags) -> str:
    name = call.invocation.name.lower()
    kind = next((kind for part, kind in _KINDS if part in name), "")
    if kind:
        return kind
    if flags.get("num_experts") is not None:
        return "mixtral"
    if flags.is_on("swiglu"):
        return "llama"
    return "gpt_neox" if _is_rotary(flags) else "gpt2"


def _is_rotary(flags: Flags) -> bool:
    flag = flags.setting("position_embedding_type")
    text = flag.value.text if flag is not None and flag.value is not None else ""
    return text in ("rope", "mrope", "yarn") or flags.is_on("use_rotary_position_embeddings")


def _gpt2(draft: Draft, flags: Flags, kind: str, layers: Flag | None) -> None:
    keys = {
        "n_layer": layers,
        "n_embd": flags.get("hidden_size"),
        "n_head": flags.get("num_attention_heads"),
        "n_inner": flags.get("ffn_hidden_size"),
        "n_positions": flags.get("max_position_embeddings") or flags.get("seq_length"),
    }
    put_architecture(draft, kind, keys, name=kind, source=_source(layers))
    draft.put("model.task", "causal-lm", _source(layers))
    _tie(draft, flags, layers)


def _t5(draft: Draft, flags: Flags, kind: str, layers: Flag | None) -> None:
    keys = {
        "num_layers": layers,
        "num_decoder_layers": flags.get("decoder_num_layers") or layers,
        "d_model": flags.get("hidden_size"),
        "num_heads": flags.get("num_attention_heads"),
        "d_kv": flags.get("kv_channels"),
        "d_ff": flags.get("ffn_hidden_size"),
    }
    put_architecture(draft, kind, keys, name=kind, source=_source(layers))
    draft.put("model.task", "seq2seq-lm", _source(layers))
    hidden, heads = draft.get(f"{_CONFIG}.d_model"), draft.get(f"{_CONFIG}.num_heads")
    if keys["d_ff"] is None and hidden:
        draft.put(f"{_CONFIG}.d_ff", 4 * hidden, source_of_default(_NAME))
    if keys["d_kv"] is None and hidden and heads:
        draft.put(f"{_CONFIG}.d_kv", hidden // heads, source_of_default(_NAME))
    draft.integer("input.targetLength", flags.get("decoder_seq_length"))


def _common(draft: Draft, flags: Flags, kind: str, layers: Flag | None) -> None:
    keys = {
        "num_hidden_layers": layers,
        "hidden_size": flags.get("hidden_size"),
        "num_attention_heads": flags.get("num_attention_heads"),
        "intermediate_size": flags.get("ffn_hidden_size"),
        "max_position_embeddings": flags.get("max_position_embeddings") or flags.get("seq_length"),
    }
    if kind == "mixtral":
        keys["num_local_experts"] = flags.get("num_experts")
        keys["num_experts_per_tok"] = flags.setting("moe_router_topk")
        keys["intermediate_size"] = flags.get("moe_ffn_hidden_size") or keys["intermediate_size"]
    put_architecture(draft, kind, keys, name=kind, source=_source(layers))
    draft.put("model.task", "masked-lm" if kind == "bert" else "causal-lm", _source(layers))
    hidden = draft.get(f"{_CONFIG}.hidden_size")
    if keys["intermediate_size"] is None and hidden:
        wide = int(4 * hidden * 2 / 3) // 64 * 64 if flags.is_on("swiglu") else 4 * hidden
        draft.put(f"{_CONFIG}.intermediate_size", wide, source_of_default(_NAME))
    if kind in ("llama", "mixtral"):
        _heads(draft, flags)
    if kind == "llama" and not flags.is_on("disable_bias_linear"):
        draft.put(f"{_CONFIG}.attention_bias", True, source_of_default(_NAME))
        draft.put(f"{_CONFIG}.mlp_bias", True, source_of_default(_NAME))
    if kind != "bert":
        _tie(draft, flags, layers)


def _heads(draft: Draft, flags: Flags) -> None:
    grouped = flags.is_on("group_query_attention")
    groups = flags.setting("num_query_groups") if grouped else flags.get("num_attention_heads")
    draft.integer(f"{_CONFIG}.num_key_value_heads", groups)
    channels = flags.get("kv_channels")
    if channels is not None:
        draft.integer(f"{_CONFIG}.head_dim", channels)


def _tie(draft: Draft, flags: Flags, layers: Flag | None) -> None:
    untied = flags.is_on("untie_embeddings_and_output_weights")
    draft.put(f"{_CONFIG}.tie_word_embeddings", not untied, _source(layers))


def _vocabulary(call: Call, draft: Draft, flags: Flags) -> None:
    """Set the padded vocabulary; one that only a tokenizer's files tell is a gap."""
    padded = flags.get("padded_vocab_size")
    if draft.integer(f"{_CONFIG}.vocab_size", padded):
        return
    flag = flags.get("vocab_size")
    multiple = (number_of(flags.setting("make_vocab_size_divisible_by")) or 1) * (
        number_of(flags.get("tensor_model_parallel_size", "model_parallel_size")) or 1
    )
    if flag is not None:
        if draft.integer(f"{_CONFIG}.vocab_size", flag):
            size = draft.get(f"{_CONFIG}.vocab_size") or 0
            if size % multiple:
                draft.put(f"{_CONFIG}.vocab_size", -(-size // multiple) * multiple, flag.source)
        return
    kind = flags.get("tokenizer_type")
    is_hub = kind is not None and kind.value is not None and "HuggingFace" in kind.value.text
    tokenizer = flags.get("tokenizer_model", "vocab_file", "tokenizer_type")
    if is_hub and put_hub_vocabulary(call, draft, flags.get("tokenizer_model"), multiple=multiple):
        return
    draft.gap(
        f"{_CONFIG}.vocab_size",
        code=ReasonCode.NO_MODEL,
        path=tokenizer.field if tokenizer is not None else call.origin,
        reason="how large the vocabulary is stands in the tokenizer's files",
        hint="give --padded-vocab-size, or " + annotation_hint(f"{_CONFIG}.vocab_size"),
    )


def _source(flag: Flag | None) -> str:
    return flag.source if flag is not None else source_of_default(_NAME)
