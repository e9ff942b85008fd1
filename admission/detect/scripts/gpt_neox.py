"""GPT-NeoX: `deepy.py train.py -d configs 125M.yml local_setup.yml`.

several YAML files, merged -> the draft

Source: the recipe `gpt_neox`. Not modelled: sparse attention, mixture of experts.
"""

from __future__ import annotations

import posixpath

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.by_recipe import family_of, with_config
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.megatron_split import put_mixed_bf16
from admission.detect.scripts.optimizer_classes import put_optimizer_class
from admission.detect.scripts.verbs import number_of, put_architecture, put_batch, put_parallel
from admission.detect.words import Word

_NAME = "GPT-NeoX"
_STEPS = "training.gradientAccumulationSteps"


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = _configured(call, draft)
    if not any("model.name" in gap.closed_by for gap in draft.gaps):
        _model(call, draft, flags)
    draft.integer("input.sequenceLength", flags.setting("seq_length"))
    replicas = _spread(call, draft, flags)
    _batch(call, draft, flags, replicas)
    _training(draft, flags)


def _configured(call: Call, draft: Draft) -> Flags:
    """Return what all files set: they are merged, no key may stand in two of them."""
    folder = call.flags.get("conf_dir")
    flags = call.flags
    words = [word for word in call.flags.positional if not word.text.endswith(".py")]
    for word in words:
        flag = _file(call, word, folder)
        read_flags = with_config(call, draft, flag)
        if read_flags is not call.flags:
            below = Flags(given=read_flags.given[: len(read_flags.given) - len(call.flags.given)])
            flags = flags.over(below)
    if not words:
        draft.gap(
            "model.name",
            "input.batchSize",
            code=ReasonCode.NO_MODEL,
            path=call.origin,
            reason="deepy.py is given no configuration",
            hint=annotation_hint("model.name"),
        )
    return flags


def _file(call: Call, word: Word, folder: Flag | None) -> Flag:
    name = word.text if word.text.endswith((".yml", ".json")) else f"{word.text}.yml"
    if folder is not None and folder.value is not None:
        name = posixpath.join(folder.value.text, name)
    return Flag(
        name="conf_file",
        spelling="configuration",
        values=(word._replace(text=name),),
        where=call.invocation.where,
        path=call.invocation.path,
        origin=word.origin,
    )


def _text(flags: Flags, key: str) -> str:
    flag = flags.setting(key)
    return flag.value.text if flag is not None and flag.value is not None else ""


def _model(call: Call, draft: Draft, flags: Flags) -> None:
    layers = flags.setting("num_layers")
    missing = [
        key
        for key in ("num_layers", "hidden_size", "num_attention_heads")
        if flags.setting(key) is None
    ]
    if missing:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=call.origin,
            reason=f"no configuration that is seen sets {missing[0]}",
            hint=annotation_hint("model.name"),
        )
        return
    is_gated = _text(flags, "activation") in ("swiglu", "geglu") or (
        _text(flags, "mlp_type") == "llama"
    )
    kind = "llama" if is_gated else "gpt_neox" if _text(flags, "pos_emb") == "rotary" else "gpt2"
    dims = {
        "num_hidden_layers": layers,
        "hidden_size": flags.setting("hidden_size"),
        "num_attention_heads": flags.setting("num_attention_heads"),
        "num_key_value_heads": flags.setting("num_kv_heads"),
        "max_position_embeddings": flags.setting("max_position_embeddings", "seq_length"),
    }
    if kind == "gpt2":
        dims = {
            "n_layer": layers,
            "n_embd": dims["hidden_size"],
            "n_head": dims["num_attention_heads"],
            "n_positions": dims["max_position_embeddings"],
        }
    source = layers.source if layers is not None else _NAME
    put_architecture(draft, kind, dims, name=kind, source=source)
    draft.put("model.task", "causal-lm", source)
    untied = flags.setting("no_weight_tying")
    draft.put(
        "model.config.tie_word_embeddings",
        untied is None or not untied.is_on,
        untied.source if untied is not None else source_of_default(_NAME),
    )
    _width(draft, flags, kind, source)
    _vocabulary(call, draft, flags)


def _width(draft: Draft, flags: Flags, kind: str, source: str) -> None:
    """Set the width of the MLP: four times the hidden size unless it is given."""
    flag, hidden = flags.setting("intermediate_size"), number_of(flags.setting("hidden_size"))
    if kind == "llama":
        draft.gap(
            "model.config.intermediate_size",
            code=ReasonCode.NO_MODEL,
            path=flag.field if flag is not None else "configuration",
            reason="how wide GPT-NeoX makes a gated layer differs between its releases",
            hint=annotation_hint("model.config.intermediate_size"),
        )
        return
    is_given = draft.integer("model.config.intermediate_size", flag) if kind == "gpt_neox" else True
    if not is_given and hidden:
        draft.put("model.config.intermediate_size", 4 * hidden, source)


def _vocabulary(call: Call, draft: Draft, flags: Flags) -> None:
    if draft.integer("model.config.vocab_size", flags.setting("padded_vocab_size")):
        return
    tokenizer = flags.setting("vocab_file", "tokenizer_type")
    draft.gap(
        "model.config.vocab_size",
        code=ReasonCode.NO_MODEL,
        path=tokenizer.field if tokenizer is not None else call.origin,
        reason="how large the vocabulary is stands in the tokenizer's files",
        hint=annotation_hint("model.config.vocab_size"),
    )


def _spread(call: Call, draft: Draft, flags: Flags) -> int | None:
    """Set degrees and ZeRO stage; DeepSpeed starts one process on every GPU."""
    tensor = flags.setting("model_parallel_size")
    pipeline = flags.setting("pipe_parallel_size")
    model = 1
    for name, flag in (("tensorParallel", tensor), ("pipelineParallel", pipeline)):
        if flag is not None and flag.value is not None and flag.value.text != "0":
            draft.integer(f"parallelism.{name}", flag)
            model *= draft.get(f"parallelism.{name}") or 1
    stage = flags.setting("zero_optimization.stage")
    number = number_of(stage)
    source = stage.source if stage is not None else source_of_default(_NAME)
    ranks = call.ranks
    total = ranks.total if ranks.is_distributed else call.gpus * ranks.started
    strategy = f"zero{number}" if number in (1, 2, 3) else "ddp"
    put_parallel(draft, strategy, source=source, implementation="deepspeed")
    offload = flags.setting("zero_optimization.offload_optimizer.device")
    if (offload is not None and offload.value is not None and offload.value.text == "cpu") or (
        (old := flags.setting("zero_optimization.cpu_offload")) is not None and old.is_on
    ):
        draft.put("parallelism.offload", "optimizer", source)
    if call.ranks.gaps or total % model:
        return None
    draft.put("parallelism.dataParallel", total // model, f"{total} GPUs / {model}")
    return total // model


def _batch(call: Call, draft: Draft, flags: Flags, replicas: int | None) -> None:
    """Set micro-batch and accumulation: two of them and the train batch tell the third."""
    if any("input.batchSize" in gap.closed_by for gap in draft.gaps):
        return
    micro = flags.setting("train_micro_batch_size_per_gpu")
    steps = flags.get("gradient_accumulation_steps")
    whole = flags.setting("train_batch_size")
    if micro is not None:
        put_batch(call, draft, micro)
    elif whole is not None and replicas:
        put_batch(call, draft, whole, accumulation=replicas * (number_of(steps) or 1))
    number, size = number_of(whole), draft.get("input.batchSize")
    if steps is None and number and replicas and isinstance(size, int) and micro is not None:
        draft.put(_STEPS, max(1, number // (size * replicas)), whole.source if whole else "")
        return
    draft.integer(_STEPS, flags.setting("gradient_accumulation_steps"))


def _training(draft: Draft, flags: Flags) -> None:
    bf16, fp16 = flags.setting("bf16.enabled"), flags.setting("fp16.enabled")
    named = flags.setting("precision")
    word = _text(flags, "precision")
    if (bf16 is not None and bf16.is_on) or word == "bfloat16":
        put_mixed_bf16(draft, source=(bf16 or named or flags.given[0]).source)
    elif (fp16 is not None and fp16.is_on) or word == "fp16":
        source = (fp16 or named or flags.given[0]).source
        draft.put("training.precision", "fp16", source)
        draft.put("training.masterWeights", True, source)
    elif word == "fp32" or fp16 is not None:
        draft.put("training.precision", "fp32", (named or fp16 or flags.given[0]).source)
    put_optimizer_class(draft, flags.setting("optimizer.type"))
    checkpointing = flags.setting("checkpoint_activations")
    path = "training.gradientCheckpointing"
    if checkpointing is not None and checkpointing.is_on:
        every = number_of(flags.setting("checkpoint_num_layers")) or 1
        draft.put(path, {"mode": "full", "every": every}, checkpointing.source)
    elif flags.given:
        draft.put(path, "none", source_of_default(_NAME))
    clip = flags.setting("gradient_clipping")
    if clip is not None and clip.value is not None:
        draft.put("training.clipGradNorm", bool(clip.value.text.strip("0.")), clip.source)


FAMILY = family_of("gpt_neox", read)
