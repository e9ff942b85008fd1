"""MaxText: `MaxText/train.py base.yml model_name=llama2-7b per_device_batch_size=4`.

a YAML file with overrides -> the draft

Source: the recipe `maxtext`, the table `maxtext_models`. Not modelled: quantised training,
rematerialisation of single layers, sharding rules.
"""

from __future__ import annotations

import math

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint, integer_of
from admission.detect.flags import Flag, Flags
from admission.detect.recipes.tables import load_table
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.optimizer_classes import put_optimizer_class
from admission.detect.scripts.shipped_files import with_shipped
from admission.detect.scripts.verbs import number_of, put_architecture, put_batch, put_parallel

_NAME = "MaxText"
_NODES = ("NNODES", "JAX_PROCESS_COUNT", "JAX_NUM_PROCESSES")
_COORDINATORS = ("JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_IP", "COORDINATOR_ADDRESS")
"""A variable by which the processes of several pods find each other."""
_PRECISIONS = {
    ("bfloat16", "float32"): "amp-bf16",
    ("bfloat16", "bfloat16"): "bf16",
    ("float16", "float32"): "amp-fp16",
    ("float32", "float32"): "fp32",
}
_KEPT = ("none", "")
_WHOLE = ("full",)
_AXES = (
    ("tensor", "tensorParallel"),
    ("pipeline", "pipelineParallel"),
    ("context", "contextParallel"),
)


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = _configured(call, draft)
    _model(draft, flags)
    put_batch(call, draft, flags.setting("per_device_batch_size"))
    draft.integer("input.sequenceLength", flags.setting("max_target_length"))
    draft.integer(
        "training.gradientAccumulationSteps", flags.setting("gradient_accumulation_steps")
    )
    put_optimizer_class(draft, flags.setting("opt_type"))
    _precision(draft, flags)
    _rematerialisation(draft, flags)
    _mesh(call, draft, flags)


def _configured(call: Call, draft: Draft) -> Flags:
    """Return the flags over those of the file; MaxText's own `base.yml` is the recipe."""
    words = [word for word in call.flags.positional if word.text.endswith((".yml", ".yaml"))]
    if not words or (words[0].is_known and words[0].text.rpartition("/")[2] == "base.yml"):
        return call.flags
    flag = Flag(
        name="config",
        spelling="configuration",
        values=(words[0],),
        where=call.invocation.where,
        path=call.invocation.path,
        origin=words[0].origin,
    )
    files = load_table("maxtext_models")["files"]
    return with_shipped(call, draft, flag, files, name=_NAME)


def _model(draft: Draft, flags: Flags) -> None:
    flag = flags.setting("model_name")
    text = draft.word("model.name", flag)
    if flag is None or text is None:
        return
    if text == "default":
        _dimensions(draft, flags, flag)
        return
    name = load_table("maxtext_models")["models"].get(text)
    if name is None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=flag.field,
            reason=f"{flag.spelling} {text:.60} is no model that is known",
            hint=annotation_hint("model.name"),
        )
        return
    draft.put("model.source", "huggingface", flag.source)
    draft.put("model.name", name, flag.source)
    changed = [flag for flag in flags.given if flag.name.startswith("base_")]
    if changed:
        draft.doubt(f"{changed[0].field}: {changed[0].spelling} changes the model", "model.config")


def _dimensions(draft: Draft, flags: Flags, flag: Flag) -> None:
    keys = {
        "hidden_size": flags.setting("base_emb_dim"),
        "num_attention_heads": flags.setting("base_num_query_heads"),
        "num_key_value_heads": flags.setting("base_num_kv_heads"),
        "intermediate_size": flags.setting("base_mlp_dim"),
        "num_hidden_layers": flags.setting("base_num_decoder_layers"),
        "head_dim": flags.setting("head_dim"),
        "vocab_size": flags.setting("vocab_size"),
    }
    put_architecture(draft, "llama", keys, name="llama", source=flag.source)
    draft.put("model.task", "causal-lm", flag.source)


def _precision(draft: Draft, flags: Flags) -> None:
    dtype, kept = flags.setting("dtype"), flags.setting("weight_dtype")
    pair = tuple(
        flag.value.text if flag is not None and flag.value is not None else ""
        for flag in (dtype, kept)
    )
    precision = _PRECISIONS.get((pair[0], pair[1]))
    if dtype is not None and precision is not None:
        draft.put("training.precision", precision, dtype.source)


def _rematerialisation(draft: Draft, flags: Flags) -> None:
    flag = flags.setting("remat_policy")
    text = draft.word("training.gradientCheckpointing", flag)
    if flag is None or text is None:
        return
    path = "training.gradientCheckpointing"
    if text in _WHOLE or text in _KEPT:
        draft.put(path, "full" if text in _WHOLE else "none", flag.source)
    else:
        plain = "".join(char for char in text if char.isalnum() or char in "_.-")
        draft.put(path, {"mode": "selective", "policy": plain[:64] or "custom"}, flag.source)


def _mesh(call: Call, draft: Draft, flags: Flags) -> None:
    """Set the degrees; what they leave of the devices shares weights and data."""
    is_launched = call.invocation.launch.is_distributed
    devices = call.ranks.total if is_launched else call.gpus * _nodes(call)
    model = 1
    for axis, name in _AXES:
        degree = 1
        for level in ("ici", "dcn"):
            degree *= number_of(flags.get(f"{level}_{axis}_parallelism")) or 1
        flag = flags.get(f"ici_{axis}_parallelism", f"dcn_{axis}_parallelism")
        if degree > 1 and flag is not None:
            draft.put(f"parallelism.{name}", degree, flag.source)
            model *= degree
    replicas = devices // model
    source = f"{source_of_default(_NAME)} on {devices} GPUs"
    sharded = flags.get("ici_fsdp_parallelism")
    is_sharded = sharded is None or number_of(sharded) != 1
    strategy = "none" if devices == 1 else "fsdp" if is_sharded else "ddp"
    put_parallel(draft, strategy, source=source)
    if devices > 1:
        draft.put("parallelism.dataParallel", max(1, replicas), source)
    copies = _copies(flags)
    if sharded is not None and is_sharded and 1 < copies < replicas and replicas % copies == 0:
        draft.put("parallelism.shardGroup", replicas // copies, sharded.source)


def _copies(flags: Flags) -> int:
    """Return how many groups of devices each hold the whole state: the axis `data`."""
    return math.prod(
        max(number_of(flags.get(f"{level}_data_parallelism")) or 1, 1) for level in ("ici", "dcn")
    )


def _nodes(call: Call) -> int:
    for name in _NODES:
        for word in call.invocation.variables.get(name, ())[:1]:
            number = integer_of(word.text) if word.is_known else None
            if number:
                return min(number, 1 << 16)
    is_joined = any(call.invocation.variables.get(name) for name in _COORDINATORS)
    return call.ranks.replicas if is_joined else 1


FAMILY = family_of("maxtext", read, is_closed=False)
