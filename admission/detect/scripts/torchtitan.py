"""torchtitan: a model and its flavor, by a TOML file, a named configuration or flags.

`-m torchtitan.train --job.config_file X.toml --training.local_batch_size 2` -> the draft

Source: the recipe `torchtitan`, the table `torchtitan_configs`. Not modelled: quantised training,
asynchronous checkpoints, pipeline schedules by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from admission.codes import ReasonCode
from admission.detect.configs import document_flags
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.recipes.tables import load_table, row_of
from admission.detect.scripts.by_recipe import family_of, with_config
from admission.detect.scripts.family import Call
from admission.detect.scripts.optimizer_classes import put_optimizer_class
from admission.detect.scripts.shipped_files import is_in_image
from admission.detect.scripts.torchtitan_mesh import put_mesh
from admission.detect.scripts.verbs import number_of, put_batch

_TABLE = "torchtitan_configs"
_TOP = ("", ".", "torchtitan")
"""Folders above the old `train_configs`."""
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = _configured(call, draft)
    _model(call, draft, flags)
    _batch(draft, call, flags)
    replicas = put_mesh(call, draft, flags)
    _accumulation(draft, flags, replicas)
    _training(draft, flags)


def _configured(call: Call, draft: Draft) -> Flags:
    """Return the flags over those of the file or named configuration they start from."""
    flags = call.flags
    table = load_table(_TABLE)
    named = flags.get("config")
    if named is not None and named.value is not None and flags.get("job.config_file") is None:
        values = table["named"].get(named.value.text)
        if values is None:
            _unknown(draft, named, "no configuration that is known")
            return flags
        return _over(flags, values, named)
    flag = flags.get("job.config_file")
    if flag is None or flag.value is None:
        return flags
    if flag.value.is_known and is_in_image(call, flag.value.text):
        version = call.invocation.versions.get("torchtitan")
        values = row_of(_rows(flag.value.text), version)
        if values is not None:
            return _over(flags, values, flag)
    return with_config(call, draft, flag)


def _rows(path: str) -> list[list[Any]]:
    """Return the shipped file at *path*: `MODEL/train_configs/NAME`.

    Before 0.1 (@57387af0e) all lay in one `train_configs` at the top, with the same values.
    """
    folder, found, name = f"/{path}".rpartition("/train_configs/")
    if not found:
        return []
    model = folder.rpartition("/")[2]
    files = load_table(_TABLE)["files"]
    keys = [key for key in files if key == f"{model}/{name}"]
    if not keys and model in _TOP:
        keys = [key for key in files if key == f"llama3/{name}"]
    return files[keys[0]] if keys else []


def _over(flags: Flags, values: Mapping[str, Any], flag: Flag) -> Flags:
    text = flag.value.text if flag.value is not None else ""
    return flags.over(document_flags(values, told_by=f"torchtitan {text}", path=flag.field))


def _unknown(draft: Draft, flag: Flag, what: str) -> None:
    word = flag.value
    draft.gap(
        "model.name",
        "input.batchSize",
        code=ReasonCode.NO_MODEL if word is None or word.is_known else word.code,
        path=flag.field,
        reason=f"{flag.spelling} {word.text if word else '':.60} is {what}",
        hint=annotation_hint("model.name"),
    )


def _model(call: Call, draft: Draft, flags: Flags) -> None:
    if any("model.name" in gap.closed_by for gap in draft.gaps):
        return
    name, flavor = flags.setting("model.name"), flags.setting("model.flavor")
    first, second = draft.word("model.name", name), draft.word("model.name", flavor)
    if name is None or flavor is None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=call.origin,
            reason="no model.name and model.flavor are given",
            hint="give --model.name and --model.flavor, or " + annotation_hint("model.name"),
        )
        return
    if first is None or second is None:
        return
    model = load_table(_TABLE)["models"].get(first, {}).get(second)
    if model is None:
        _unknown(draft, flavor, f"no flavor of {first:.40} whose model is known")
        return
    draft.put("model.source", "huggingface", flavor.source)
    draft.put("model.name", model, flavor.source)


def _batch(draft: Draft, call: Call, flags: Flags) -> None:
    """Set micro-batch and length; newer releases give the tokens of both together."""
    given = flags.get("training.max_context_length", "training.seq_len")
    draft.integer("input.sequenceLength", given or flags.setting("training.seq_len"))
    tokens = flags.get("training.num_tokens_per_microbatch_per_dp_rank")
    if tokens is None:
        sizes = flags.get("training.local_batch_size", "training.batch_size")
        put_batch(call, draft, sizes or flags.setting("training.local_batch_size"))
        return
    length, number = draft.get("input.sequenceLength"), number_of(tokens)
    if length and number:
        source = f"{tokens.source} / {length}"
        draft.put("input.batchSize", max(1, number // length), source)
    else:
        draft.integer("input.batchSize", tokens)


def _accumulation(draft: Draft, flags: Flags, replicas: int | None) -> None:
    """Set the accumulation: one step, unless a global batch is given."""
    path = "training.gradientAccumulationSteps"
    flag = flags.get("training.global_batch_size")
    text = flag.value.text if flag is not None and flag.value is not None else "-1"
    if flag is None or text == "-1":
        draft.put(path, 1, flag.source if flag is not None else "default of torchtitan")
        return
    size, number = draft.get("input.batchSize"), number_of(flag)
    if number is None:
        draft.integer(path, flag)
    elif isinstance(size, int) and replicas:
        steps = max(1, number // (size * replicas))
        draft.put(path, steps, f"{flag.source} / ({size} * {replicas})")


def _training(draft: Draft, flags: Flags) -> None:
    source = "default of torchtitan"
    put_optimizer_class(draft, flags.setting("optimizer.name"))
    if draft.get("training.optimizer.name") in ("adamw", "adam"):
        draft.put("training.optimizer.fused", True, source)
    draft.put("training.clipGradNorm", True, source)
    param = flags.setting("training.mixed_precision_param")
    text = draft.word("training.precision", param)
    kept = flags.setting("training.dtype")
    weights = _DTYPES.get(kept.value.text if kept is not None and kept.value is not None else "")
    compute = _DTYPES.get(text or "")
    if param is not None and weights == "fp32" and compute in ("bf16", "fp16"):
        draft.put("training.precision", f"amp-{compute}", param.source)
        document = {"param": compute, "reduce": "fp32"}
        draft.put("parallelism.mixedPrecision", document, param.source)
    elif param is not None and weights is not None and compute is not None:
        draft.put("training.precision", weights, param.source)
    mode = flags.setting("activation_checkpoint.mode")
    word = draft.word("training.gradientCheckpointing", mode)
    if mode is not None and word in ("none", "full"):
        draft.put("training.gradientCheckpointing", word, mode.source)
    elif mode is not None and word is not None:
        option = flags.setting("activation_checkpoint.selective_ac_option")
        chosen = option.value.text if option is not None and option.value is not None else "op"
        document = {"mode": "selective", "policy": "op"}
        if chosen.isdigit() and int(chosen) > 0:
            draft.put(
                "training.gradientCheckpointing",
                {"mode": "full", "every": int(chosen)},
                mode.source,
            )
        else:
            draft.put("training.gradientCheckpointing", document, mode.source)
    compiled = flags.get("compile.enable", "training.compile")
    if compiled is not None:
        draft.put("training.compile", compiled.is_on, compiled.source)


FAMILY = family_of("torchtitan", read, is_closed=False)
