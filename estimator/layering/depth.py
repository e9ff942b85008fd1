"""How many layers a model has, and the same model with fewer.

    JobSpec -> number of layers; JobSpec, number -> JobSpec

Only architectures whose layers are the same by construction have a depth here: others repeat a
pattern longer than what is traced (Gemma's windows, DeepSeek's dense first layers), share weights
or count encoder and decoder apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from estimator.catalog.models import known_model
from estimator.notes import Assumption, AssumptionCode
from estimator.spec import Framework, JobSpec, ModelSource, Strategy, Task, parse_spec

LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
"""Keys of a transformers configuration that hold the number of layers."""

MAX_LAYERS = 4096
"""Of a trace that is extended. A longer model is the frontend's to refuse, before it is built."""

UNIFORM = frozenset(
    {
        "bert",
        "bloom",
        "cohere",
        "distilbert",
        "electra",
        "falcon",
        "gemma",
        "glm",
        "glm4",
        "gpt2",
        "gpt_bigcode",
        "gpt_neox",
        "gptj",
        "granite",
        "helium",
        "llama",
        "mistral",
        "mixtral",
        "nemotron",
        "olmo",
        "olmo2",
        "opt",
        "phi",
        "phi3",
        "qwen2",
        "qwen3",
        "qwen3_moe",
        "roberta",
        "stablelm",
        "starcoder2",
        "vit",
        "xlm-roberta",
    }
)
"""Model types of transformers 5.24.0 that build every layer alike unless `SPECIAL` keys say so."""

NAMES_A_LAYER = re.compile(r"\.\d|^\d|[\\^$*+?|()\[\]{}]")
"""A number between dots, or a pattern."""

SPECIAL = ("layer_types", "mlp_only_layers", "use_sliding_window", "layers_block_type")
"""Keys that make single layers different."""


def config_of(spec: JobSpec) -> dict[str, Any]:
    """Return the transformers configuration of *spec*, inline or known; empty if there is none."""
    if spec.model.source is not ModelSource.HUGGINGFACE:
        return {}
    if spec.model.config:
        return dict(spec.model.config)
    known = known_model(spec.model.name)
    if known is None or known.library != "transformers" or known.remote_code:
        return {}
    config = dict(known.config)
    if known.separate_head:
        config["tie_word_embeddings"] = False
    return config


def key_of(config: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return which of *names* is a whole number in *config*."""
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return name
    return None


def depth_of(spec: JobSpec) -> int | None:
    """Return the number of equal layers of the model, None if they may not be equal.

    DDP's buckets depend on all weights at once, and a recorded graph has a memory pool of its own.
    """
    config = config_of(spec)
    key = key_of(config, LAYERS)
    if key is None or spec.framework is not Framework.PYTORCH:
        return None
    is_equal = (
        config.get("model_type") in UNIFORM
        and not any(config.get(name) for name in SPECIAL)
        and config.get("decoder_sparse_step", 1) == 1
    )
    parallel = spec.parallelism
    is_bucketed = parallel.strategy is Strategy.DDP and not parallel.gradient_as_bucket_view
    if not is_equal or is_bucketed or spec.training.compile.records_graphs or _names_layers(spec):
        return None
    return int(config[key]) if config[key] <= MAX_LAYERS else None


def _names_layers(spec: JobSpec) -> bool:
    """Return whether single layers are named: by number, or by a pattern."""
    names: list[str] = []
    if spec.adapter is not None:
        if spec.adapter.options:
            return True
        names += [*spec.adapter.target_modules, *spec.adapter.trainable_modules]
    if spec.quantization is not None:
        names += spec.quantization.skip_modules
    return any(NAMES_A_LAYER.search(name) for name in names)


def at_depth(spec: JobSpec, layers: int) -> JobSpec:
    """Return the same job with a model of so many *layers*."""
    document = spec.document()
    config = config_of(spec)
    key = key_of(config, LAYERS)
    assert key is not None
    model = {**document["model"], "config": {**config, key: layers}}
    known = None if spec.model.config else known_model(spec.model.name)
    if known is not None and known.task in set(Task):
        model.setdefault("task", known.task)
    return parse_spec({**document, "model": model})


def note_of(spec: JobSpec) -> tuple[Assumption, ...]:
    """Return the note that a known architecture was taken, where it was."""
    known = None if spec.model.config else known_model(spec.model.name)
    if known is None:
        return ()
    return (
        Assumption(
            code=AssumptionCode.MODEL_DEFAULT,
            path="model.config",
            value=known.id,
            reason="absent: the architecture the catalog has under this name",
        ),
    )
