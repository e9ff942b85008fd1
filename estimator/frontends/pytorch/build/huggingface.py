"""Models of transformers, built from a configuration.

    model.config (or a known name), task -> Built

The configuration is data: never remote code, never weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import torch
import transformers
from transformers import AutoConfig

from estimator.catalog.models import known_model, known_model_ids
from estimator.errors import UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build import older_transformers
from estimator.frontends.pytorch.build.attention import attending_as, attention_of
from estimator.frontends.pytorch.build.caching import turn_off_failing_cache
from estimator.frontends.pytorch.build.heads import (
    Head,
    class_of,
    head_of,
    named_class,
    separate_head,
)
from estimator.frontends.pytorch.build.inputs import TRIED, make_inputs
from estimator.frontends.pytorch.build.job import REFUSALS, Batch, Built, Shapes
from estimator.frontends.pytorch.build.limits import check_config
from estimator.frontends.pytorch.build.losses import loss_of
from estimator.frontends.pytorch.build.matching import (
    matched_without_values,
    scipy_not_asked_for,
    unchecked_distributions,
)
from estimator.frontends.pytorch.build.misfits import check_configured, check_length, heads_named
from estimator.frontends.pytorch.build.placeholders import counted_placeholders
from estimator.frontends.pytorch.build.releases import Release, numbers, release_of
from estimator.frontends.pytorch.dtypes import WEIGHTS
from estimator.frontends.pytorch.load import on_stand_ins
from estimator.frontends.pytorch.patches import no_packed_sequences
from estimator.frontends.pytorch.versions import Version, parse_version
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobPhase, JobSpec, Task

LIBRARY = "transformers"
NEWEST: Version = (999, 0)
INSTALLED = numbers(transformers.__version__)

LAST_LOGITS_SINCE = (4, 45)
"""Releases whose generation asks for the logits of the last position (`num_logits_to_keep`)."""

SMALL = Shapes(batch_size=TRIED)

SCANS = frozenset(
    {"mamba", "mamba2", "falcon_mamba", "jamba", "bamba", "zamba", "zamba2", "rwkv", "qwen3_next"}
)
"""Model types whose recurrences run in kernels outside torch where those are installed."""

PLACEHOLDERS = (
    "audio_token_id",
    "audio_token_index",
    "image_token_id",
    "image_token_index",
    "video_token_id",
    "video_token_index",
)
"""Ids of tokens that stand for what is seen or heard."""

DROPPED = frozenset(
    [
        "auto_map",
        "torch_dtype",
        "dtype",
        "transformers_version",
        "quantization_config",
        "attn_implementation",
        "_attn_implementation",
        "_name_or_path",
        "architectures",
        "model_type",
    ]
)
"""Keys of a Hub config.json that are not handed to the configuration class."""


def build_huggingface(spec: JobSpec, notebook: Notebook) -> Built:
    """Return the transformers model *spec* names, on stand-ins.

    Raises:
        SpecError: if numbers of the configuration are out of bounds.
        UnsupportedJobError: for unknown names, tasks without a head, broken configurations.
    """
    config_json, task = _configuration(spec, notebook)
    check_config(config_json)
    check_configured(spec, config_json)
    release = release_of(spec, notebook, LIBRARY, installed=transformers.__version__)
    with scipy_not_asked_for(), attending_as(spec, release), heads_named():
        config = _config(spec, config_json)
        model, head = _model(spec, config, config_json, task, notebook)
    check_length(spec, model)
    return built_transformer(spec, model, head, notebook, release=release)


def built_transformer(
    spec: JobSpec, model: Any, head: Head, notebook: Notebook, *, release: Release = INSTALLED
) -> Built:
    """Return *model* with what feeds it for *head*, to be run as *release* of transformers does.

    Raises:
        UnsupportedJobError: if it takes no form of input that is known.
    """
    on_stand_ins(model)
    config = model.config
    _repair(model, spec)
    older_transformers.widen_logits(model, release)
    if config.model_type in SCANS:
        notebook.unknown(
            UnknownCode.KERNEL,
            "model",
            f"'{config.model_type}' is traced without the scan kernels of other packages",
        )

    def checkpoint(reentrant: bool | None) -> None:
        keywords = {} if reentrant is None else {"use_reentrant": reentrant}
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=keywords)

    @contextmanager
    def changes() -> Iterator[None]:
        torch_version = parse_version(spec.framework_version or torch.__version__) or NEWEST
        with (
            _changes(model),
            older_transformers.run_as(model, release, torch_version=torch_version),
        ):
            yield

    inputs = make_inputs(spec, model, head, notebook, takes=lambda batch: _refusal(model, batch))
    loss = loss_of(head, notebook)
    if spec.phase is JobPhase.TRAIN:
        with _changes(model):
            turn_off_failing_cache(model, lambda: inputs.make(SMALL), loss, notebook)
    return Built(
        model=model,
        make_batch=inputs.make,
        forward=lambda module, batch: module(**batch),
        loss=loss,
        targets=inputs.targets,
        checkpoint=checkpoint if model.supports_gradient_checkpointing else None,
        library=LIBRARY,
        is_at_most=head in (Head.BOXES, Head.MASKS),
        keeps_last=release >= LAST_LOGITS_SINCE,
        changes=changes,
    )


@contextmanager
def _changes(model: Any) -> Iterator[None]:
    changes = (no_packed_sequences(), matched_without_values(), counted_placeholders(model))
    with changes[0], changes[1], changes[2], unchecked_distributions():
        yield


def _refusal(model: Any, batch: Batch) -> Exception | None:
    """Return why *model* does not take *batch*, or None: the form of its input is tried out."""
    try:
        with _changes(model):
            model(**batch)
    except (*REFUSALS, UnsupportedJobError) as error:
        return error
    return None


def _configuration(spec: JobSpec, notebook: Notebook) -> tuple[dict[str, Any], Task | None]:
    """Return the inline configuration, or that of a known model of this name."""
    if spec.model.config:
        return dict(spec.model.config), spec.model.task
    known = known_model(spec.model.name)
    if known is None:
        close = get_close_matches(spec.model.name, known_model_ids(), n=3)
        hint = "give the architecture inline as model.config (the Hub's config.json)"
        raise UnsupportedJobError(
            f"model.name: the architecture of '{spec.model.name:.80}' is not known",
            code=UnknownCode.MODEL,
            path="model.name",
            hint=f"{hint}; close matches: {', '.join(close)}" if close else hint,
        )
    if known.library != "transformers" or known.remote_code:
        needs = "code of its own" if known.remote_code else known.library
        raise UnsupportedJobError(
            f"model.name: '{known.id}' needs {needs}, which is not modelled",
            code=UnknownCode.MODEL,
            path="model.name",
        )
    notebook.assume(
        AssumptionCode.MODEL_DEFAULT,
        "model.config",
        known.id,
        "absent: the architecture the catalog has under this name",
    )
    config = dict(known.config)
    if known.separate_head:
        config["tie_word_embeddings"] = False
    task = spec.model.task or (Task(known.task) if known.task in set(Task) else None)
    return config, task


def _config(spec: JobSpec, config_json: Mapping[str, Any]) -> Any:
    """Return the configuration object.

    Raises:
        UnsupportedJobError: for a missing or unknown `model_type` or values the class refuses.
    """
    model_type = config_json.get("model_type")
    if not isinstance(model_type, str) or model_type not in transformers.CONFIG_MAPPING:
        close = get_close_matches(str(model_type), list(transformers.CONFIG_MAPPING), n=3)
        raise UnsupportedJobError(
            f"model.config.model_type: {model_type!r:.60} is not a model type of transformers",
            code=UnknownCode.MODEL_CONFIG,
            path="model.config.model_type",
            hint=f"close matches: {', '.join(close)}" if close else None,
        )
    rest = {name: value for name, value in config_json.items() if name not in DROPPED}
    if spec.model.num_labels is not None:
        rest["num_labels"] = spec.model.num_labels
    if spec.model.task is Task.REGRESSION:
        rest["num_labels"] = 1
    return AutoConfig.for_model(model_type, **rest)


def _model(
    spec: JobSpec,
    config: Any,
    config_json: Mapping[str, Any],
    task: Task | None,
    notebook: Notebook,
) -> tuple[Any, Head]:
    """Return the model, and what it is trained to say."""
    attention = attention_of(spec, notebook)
    keywords: dict[str, Any] = {"dtype": WEIGHTS[spec.training.precision]}
    if attention is not None:
        keywords["attn_implementation"] = attention
    found = named_class(config_json) if task is None else None
    if found is None:
        if task is None:
            task = _guess(config, notebook)
        found = class_of(task, config)
    if found is None:
        raise UnsupportedJobError(
            f"model.task: '{task}' is not modelled for model type '{config.model_type}'",
            code=UnknownCode.TASK,
            path="model.task",
        )
    model = found._from_config(_config_of(found, config), **keywords)
    separate_head(model, config_json)
    return model, head_of(found, task)


def _guess(config: Any, notebook: Notebook) -> Task:
    """Return the usual task of this configuration, and note it."""
    task = Task.FEATURE_EXTRACTION
    for guess in (Task.CAUSAL_LM, Task.SEQ2SEQ_LM, Task.IMAGE_CLASSIFICATION):
        if class_of(guess, config) is not None:
            task = guess
            break
    notebook.assume(
        AssumptionCode.MODEL_DEFAULT, "model.task", task, "absent: the usual head of this model"
    )
    return task


def _config_of(head: Any, config: Any) -> Any:
    """Return the part of *config* that *head* takes (`_BaseAutoModelClass.from_config`)."""
    for name, kind in config.sub_configs.items():
        if head.config_class is kind and type(config) is not kind:
            return getattr(config, name)
    return config


def _repair(model: Any, spec: JobSpec) -> None:
    """Give what no shape depends on and configurations may leave out: token ids, a language."""
    config = model.config
    text = config.get_text_config()
    for part in {id(config): config, id(text): text}.values():
        if getattr(part, "pad_token_id", None) is None:
            part.pad_token_id = 0
        for name in PLACEHOLDERS:
            if getattr(part, name, 0) is None:
                setattr(part, name, 1)
        if getattr(part, "decoder_start_token_id", None) is None and config.is_encoder_decoder:
            part.decoder_start_token_id = 0
        if hasattr(part, "use_cache") and not spec.training.use_cache:
            part.use_cache = False
    if getattr(config, "languages", None) and hasattr(model, "set_default_language"):
        model.set_default_language(config.languages[0])
