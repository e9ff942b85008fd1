"""NeMo 1's Megatron examples: `megatron_gpt_pretraining.py model.num_layers=24 trainer.devices=8`.

Hydra overrides over a YAML file -> the draft, through Megatron's own reader

Source: the recipe `nemo_megatron`. Not modelled: fine-tuning, whose model is in a `.nemo` file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.by_recipe import family_of, with_config
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.interpolation import interpolated
from admission.detect.scripts.megatron_model import put_model
from admission.detect.scripts.megatron_split import (
    Split,
    put_micro_batches,
    put_mixed_bf16,
    put_recomputation,
    put_split,
)
from admission.detect.scripts.optimizer_classes import optimizer_of_class
from admission.detect.words import literal

_NAME = "NeMo 1"
_OWN_LAYERS = {"num_layers": 12, "hidden_size": 768, "num_attention_heads": 12}
"""Dimensions in the file the example starts from, if no other is named."""
_OWN_LENGTH = 512
_HUB = literal("HuggingFaceTokenizer")
_OPTIMIZERS = {"distributed_fused_adam": "fused_adam", "mcore_distributed_optim": "adam"}
"""Optimizers whose state is sharded over the replicas -> what they do."""
_RENAMED: Mapping[str, str] = {
    "model.num_layers": "num_layers",
    "model.hidden_size": "hidden_size",
    "model.num_attention_heads": "num_attention_heads",
    "model.ffn_hidden_size": "ffn_hidden_size",
    "model.num_query_groups": "num_query_groups",
    "model.kv_channels": "kv_channels",
    "model.encoder_seq_length": "seq_length",
    "model.max_position_embeddings": "max_position_embeddings",
    "model.position_embedding_type": "position_embedding_type",
    "model.make_vocab_size_divisible_by": "make_vocab_size_divisible_by",
    "model.tensor_model_parallel_size": "tensor_model_parallel_size",
    "model.tokenizer.model": "tokenizer_model",
    "model.tokenizer.vocab_file": "vocab_file",
    "model.tokenizer.type": "tokenizer_type",
}


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = _configured(call, draft)
    is_open = any("model.name" in gap.closed_by for gap in draft.gaps)
    restored = flags.setting("model.restore_from_path")
    if restored is not None and "pretraining" not in call.invocation.name:
        draft.gap(
            "model.name",
            "input.batchSize",
            code=ReasonCode.NO_MODEL,
            path=restored.field,
            reason=f"{restored.spelling} is a .nemo file that only the container sees",
            hint=annotation_hint("model.name"),
        )
    elif not is_open:
        put_model(replace(call, flags=_renamed(flags)), draft)
    replicas = _split(call, draft, flags)
    if not is_open:
        put_micro_batches(
            draft,
            micro=flags.setting("model.micro_batch_size"),
            total=flags.setting("model.global_batch_size"),
            replicas=replicas,
        )
        draft.integer("input.sequenceLength", flags.setting("model.encoder_seq_length"))
    _training(draft, flags)


def _configured(call: Call, draft: Draft) -> Flags:
    """Return the overrides over the file Hydra is pointed to, else over the example's own."""
    flags = call.flags
    folder = flags.get("config_path", "config_dir")
    name = flags.get("config_name")
    if folder is None and name is None:
        own = {f"model.{key}": value for key, value in _OWN_LAYERS.items()}
        own["model.encoder_seq_length"] = _OWN_LENGTH
        given = tuple(_default(key, value) for key, value in own.items())
        return flags.over(Flags(given=given))
    word = name.value if name is not None else None
    folder_word = folder.value if folder is not None else None
    text = word.text if word is not None else "megatron_gpt_config"
    path = posixpath.join(
        folder_word.text if folder_word is not None else "conf",
        text if text.endswith((".yaml", ".yml")) else f"{text}.yaml",
    )
    return interpolated(with_config(call, draft, folder or name, path=path))


def _default(name: str, value: int) -> Flag:
    return Flag(
        name=name,
        spelling=name,
        values=(literal(str(value)),),
        where="",
        path="",
        origin="",
        told_by=source_of_default(_NAME),
    )


def _renamed(flags: Flags) -> Flags:
    """Return the model's settings under Megatron's own names."""
    given = [
        replace(flag, name=_RENAMED[flag.name]) for flag in flags.given if flag.name in _RENAMED
    ]
    given = [flag for flag in given if flag.value is None or flag.value.text != "null"]
    defaults = {_RENAMED[name]: flag for name, flag in flags.defaults.items() if name in _RENAMED}
    activation = flags.setting("model.activation")
    word = activation.value if activation is not None else None
    if activation is not None and word is not None and word.text.endswith(("swiglu", "geglu")):
        given.append(replace(activation, name="swiglu", values=()))
    groups = flags.setting("model.num_query_groups")
    if groups is not None:
        given.append(replace(groups, name="group_query_attention", values=()))
    library, tokenizer = flags.get("model.tokenizer.library"), flags.get("model.tokenizer.type")
    named = library.value.text if library is not None and library.value is not None else ""
    if library is not None and tokenizer is not None and named == "huggingface":
        given.append(replace(tokenizer, name="tokenizer_model"))
        given.append(replace(library, name="tokenizer_type", values=(_HUB,)))
    bias, shared = (
        flags.setting("model.bias"),
        flags.setting("model.share_embeddings_and_output_weights"),
    )
    if bias is not None and not bias.is_on:
        given.append(replace(bias, name="disable_bias_linear", values=()))
    if shared is not None and not shared.is_on:
        given.append(replace(shared, name="untie_embeddings_and_output_weights", values=()))
    return Flags(given=tuple(given), defaults=defaults)


def _split(call: Call, draft: Draft, flags: Flags) -> int | None:
    sharded = flags.setting("model.fsdp")
    is_sharded = sharded is not None and sharded.is_on
    split = Split(
        tensor=flags.setting("model.tensor_model_parallel_size"),
        pipeline=flags.setting("model.pipeline_model_parallel_size"),
        context=flags.setting("model.context_parallel_size"),
        expert=flags.setting("model.expert_model_parallel_size"),
        virtual=flags.setting("model.virtual_pipeline_model_parallel_size"),
        nodes=flags.setting("trainer.num_nodes"),
        devices=flags.setting("trainer.devices"),
    )
    replicas = put_split(call, draft, split, strategy="fsdp" if is_sharded else "ddp")
    sequence = flags.setting("model.sequence_parallel")
    if sequence is not None and sequence.is_on:
        draft.put("parallelism.sequenceParallel", True, sequence.source)
    return replicas


def _training(draft: Draft, flags: Flags) -> None:
    precision = flags.setting("trainer.precision")
    text = (draft.word("training.precision", precision) or "").lower()
    whole = flags.setting("model.megatron_amp_O2")
    if precision is not None and text.startswith(("bf16", "16")):
        kind = "bf16" if text.startswith("bf16") else "fp16"
        if whole is not None and whole.is_on and kind == "bf16":
            put_mixed_bf16(draft, source=precision.source)
        elif whole is not None and whole.is_on:
            draft.put("training.precision", "fp16", precision.source)
            draft.put("training.masterWeights", True, precision.source)
        else:
            draft.put("training.precision", f"amp-{kind}", precision.source)
    elif precision is not None and text.startswith("32"):
        draft.put("training.precision", "fp32", precision.source)
    optimizer = flags.setting("model.optim.name")
    name = draft.word("training.optimizer", optimizer)
    if optimizer is not None and name is not None:
        plain = _OPTIMIZERS.get(name, name)
        draft.put("training.optimizer", optimizer_of_class(plain), optimizer.source)
        if plain != name:
            draft.put("parallelism.distributedOptimizer", True, optimizer.source)
    granularity = flags.setting("model.activations_checkpoint_granularity")
    if granularity is None:
        draft.put("training.gradientCheckpointing", "none", source_of_default(_NAME))
    put_recomputation(draft, granularity=granularity, modules=None, layers=None)


FAMILY = family_of("nemo_megatron", read, is_closed=False)
