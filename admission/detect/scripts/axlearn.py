"""axlearn's language models: a `fuji` configuration by its name, sharded over all GPUs.

`--module=text.gpt.c4_trainer --config=fuji-7B-v2-flash` -> the draft

Source: the recipe `axlearn`, the table `axlearn_fuji`. Not modelled: what a mesh rule changes,
rematerialisation policies, FP8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag
from admission.detect.recipes.tables import load_table
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.verbs import number_of, put_parallel

_ENDINGS = ("-single-host", "-fp8", "-flash")
_DEGREE = "parallelism.dataParallel"
_NAME = "axlearn"
_PERF = "fuji-train-perf.py"
_PERF_DEFAULTS = {"gbs": 1, "seq_len": 4096, "ga": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuji:
    """One named configuration."""

    size: str
    version: Mapping[str, Any]
    is_single_host: bool
    flag: Flag

    @property
    def batch(self) -> int:
        """Return the sequences of one step over all devices."""
        whole: int = self.version["batch"]
        return whole // self.version["share"] if self.is_single_host else whole


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    source = source_of_default(_NAME)
    draft.put("training.precision", "amp-bf16", source)
    draft.put("training.optimizer", {"name": "adamw"}, source)
    fuji = _named(call, draft)
    if fuji is None:
        return
    _model(draft, fuji)
    if call.invocation.name == _PERF:
        _measured(call, draft)
    else:
        _trained(call, draft, fuji)


def _named(call: Call, draft: Draft) -> Fuji | None:
    flag = call.flags.get("config")
    text = draft.word("model.name", flag)
    if flag is None or text is None:
        if flag is None:
            _unknown(draft, call.origin, "no --config is given")
        return None
    plain, is_single_host = text, "-single-host" in text
    for ending in _ENDINGS:
        plain = plain.replace(ending, "")
    table = load_table("axlearn_fuji")
    family, _, rest = plain.partition("-")
    size, _, version = rest.partition("-")
    known = table["versions"].get(version)
    if family != "fuji" or known is None or size not in known["sizes"]:
        _unknown(draft, flag.field, f"{flag.spelling} {text:.60} is no configuration that is known")
        return None
    return Fuji(size=size, version=known, is_single_host=is_single_host, flag=flag)


def _unknown(draft: Draft, path: str, reason: str) -> None:
    draft.gap(
        "model.name",
        "input.batchSize",
        code=ReasonCode.NO_MODEL,
        path=path,
        reason=reason,
        hint=annotation_hint("model.name"),
    )


def _model(draft: Draft, fuji: Fuji) -> None:
    flag = fuji.flag
    sizes = load_table("axlearn_fuji")["sizes"][fuji.size]
    heads = sizes["num_attention_heads"]
    config = {
        "model_type": "llama",
        **sizes,
        "num_key_value_heads": fuji.version["key_value_heads"].get(fuji.size, heads),
        "vocab_size": fuji.version["vocab_size"],
        "max_position_embeddings": fuji.version["length"],
    }
    draft.put("model.source", "huggingface", flag.source)
    draft.put("model.name", flag.value.text if flag.value is not None else "", flag.source)
    draft.put("model.task", "causal-lm", flag.source)
    for key, value in config.items():
        draft.put(f"model.config.{key}", value, flag.source)


def _measured(call: Call, draft: Draft) -> None:
    """Set what the benchmark's own flags say: the mesh, the global batch, the length."""
    flags = call.flags
    degrees = {}
    for axis in ("pp", "fsdp", "sqp", "dp"):
        degree = 1
        for level in ("ici", "dcn"):
            number = _number(draft, flags.get(f"{level}_{axis}"), f"parallelism.{axis}", 1)
            degree = 0 if number is None else degree * number
        degrees[axis] = degree
    accumulation = _number(draft, flags.get("ga"), "training.gradientAccumulationSteps", 1)
    batch = _number(draft, flags.get("gbs"), "input.batchSize", _PERF_DEFAULTS["gbs"])
    if not draft.integer("input.sequenceLength", flags.get("seq_len")):
        draft.put("input.sequenceLength", _PERF_DEFAULTS["seq_len"], source_of_default(_PERF))
    replicas = degrees["fsdp"] * degrees["dp"]
    flag = flags.get("ici_fsdp")
    source = flag.source if flag is not None else source_of_default(_PERF)
    is_sharded = degrees["fsdp"] > 1
    put_parallel(draft, "fsdp" if is_sharded else "ddp" if replicas > 1 else "none", source=source)
    if not replicas or accumulation is None or batch is None:
        return
    draft.put(_DEGREE, replicas, source)
    if degrees["fsdp"] > 1 and degrees["dp"] > 1:
        draft.put("parallelism.shardGroup", degrees["fsdp"], source)
    for axis, name in (("pp", "pipelineParallel"), ("sqp", "contextParallel")):
        if degrees[axis] > 1:
            draft.put(f"parallelism.{name}", degrees[axis], source)
    draft.put("training.gradientAccumulationSteps", accumulation, _told(flags.get("ga"), _PERF))
    _share(draft, batch, replicas * accumulation, _told(flags.get("gbs"), _PERF))


def _trained(call: Call, draft: Draft, fuji: Fuji) -> None:
    """Set what the configuration says: its global batch over all devices, its length."""
    source = f"{source_of_default(_NAME)} {fuji.flag.value.text if fuji.flag.value else ''}"
    draft.put("input.sequenceLength", fuji.version["length"], source)
    processes = call.flags.get("num_processes")
    number = _number(draft, processes, _DEGREE, 1)
    put_parallel(draft, "fsdp", source=source)
    if number is None:
        return
    devices = number * call.gpus
    draft.put(_DEGREE, devices, f"{source} on {devices} GPUs")
    draft.put("training.gradientAccumulationSteps", 1, source)
    _share(draft, fuji.batch, devices, source)
    selector = call.flags.get("mesh_selector")
    if selector is not None:
        draft.doubt(
            f"{selector.field}: {selector.spelling} may set accumulation, sharding and "
            "rematerialisation of its own, which are not read"
        )


def _share(draft: Draft, batch: int, parts: int, source: str) -> None:
    if batch % parts:
        draft.warnings.append(f"{source}: {batch} does not divide by {parts}")
    draft.put("input.batchSize", max(1, batch // parts), f"{source} / {parts}")


def _told(flag: Flag | None, script: str) -> str:
    return flag.source if flag is not None else source_of_default(script)


def _number(draft: Draft, flag: Flag | None, path: str, default: int) -> int | None:
    """Return the number of *flag*, or None with a gap at *path* if it has none that is known."""
    if flag is None:
        return default
    number = number_of(flag)
    if number:
        return number
    draft.gap(
        path,
        code=ReasonCode.UNSUPPORTED
        if flag.value is None or flag.value.is_known
        else flag.value.code,
        path=flag.field,
        reason=f"{flag.spelling} {flag.value.text if flag.value else '':.60} is no number from 1",
        hint=annotation_hint("input.batchSize"),
    )
    return None


FAMILY = family_of("axlearn", read, is_closed=False)
