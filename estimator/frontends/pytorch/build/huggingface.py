"""Models of transformers, built from a configuration.

    model.config (or a known name), task -> Built

The configuration is data: never remote code, never weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import transformers
from transformers import AutoConfig, PreTrainedModel

from estimator.catalog.models import known_model, known_model_ids
from estimator.errors import UnsupportedJobError
from estimator.frontends.pytorch.build.inputs import make_inputs
from estimator.frontends.pytorch.build.job import Batch, Built, Shapes
from estimator.frontends.pytorch.build.limits import check_config
from estimator.frontends.pytorch.build.losses import loss_of
from estimator.frontends.pytorch.dtypes import WEIGHTS
from estimator.frontends.pytorch.notebook import Notebook
from estimator.frontends.pytorch.versions import parse_version
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec, Task
from estimator.spec.vocabulary import Attention

HEADS: dict[Task, tuple[str, ...]] = {
    Task.CAUSAL_LM: ("AutoModelForCausalLM",),
    Task.MASKED_LM: ("AutoModelForMaskedLM",),
    Task.SEQ2SEQ_LM: ("AutoModelForSeq2SeqLM",),
    Task.SEQUENCE_CLASSIFICATION: ("AutoModelForSequenceClassification",),
    Task.REGRESSION: ("AutoModelForSequenceClassification",),
    Task.TOKEN_CLASSIFICATION: ("AutoModelForTokenClassification",),
    Task.QUESTION_ANSWERING: ("AutoModelForQuestionAnswering",),
    Task.IMAGE_CLASSIFICATION: ("AutoModelForImageClassification",),
    Task.SEMANTIC_SEGMENTATION: ("AutoModelForSemanticSegmentation",),
    Task.SPEECH_RECOGNITION: ("AutoModelForSpeechSeq2Seq", "AutoModelForCTC"),
    Task.ZERO_SHOT_IMAGE_CLASSIFICATION: ("AutoModelForZeroShotImageClassification",),
    Task.VIDEO_CLASSIFICATION: ("AutoModelForVideoClassification",),
    Task.PRE_TRAINING: ("AutoModelForPreTraining",),
    Task.FEATURE_EXTRACTION: ("AutoModel",),
}
"""Task -> the auto classes that may have its head, first that knows the configuration."""

SCANS = frozenset(
    {"mamba", "mamba2", "falcon_mamba", "jamba", "bamba", "zamba", "zamba2", "rwkv", "qwen3_next"}
)
"""Model types whose recurrences run in kernels outside torch where those are installed."""

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
    config = _config(spec, config_json)
    model, task = _model(spec, config, config_json, task, notebook)
    config = model.config
    _repair(config, spec)
    if config.model_type in SCANS:
        notebook.unknown(
            UnknownCode.KERNEL,
            "model",
            f"'{config.model_type}' is traced without the scan kernels of other packages",
        )

    def checkpoint(reentrant: bool | None) -> None:
        keywords = {} if reentrant is None else {"use_reentrant": reentrant}
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=keywords)

    inputs = make_inputs(spec, model, task, notebook)

    def forward(module: Any, batch: Batch) -> Any:
        return module(**batch)

    def make_batch(shapes: Shapes) -> Batch:
        return inputs.make(shapes)

    return Built(
        model=model,
        make_batch=make_batch,
        forward=forward,
        loss=loss_of(task, notebook),
        targets=inputs.targets,
        checkpoint=checkpoint if model.supports_gradient_checkpointing else None,
        library="transformers",
    )


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
) -> tuple[Any, Task]:
    """Return the model with the head of the task, and the task."""
    attention = _attention(spec, notebook)
    keywords: dict[str, Any] = {"dtype": WEIGHTS[spec.training.precision]}
    if attention is not None:
        keywords["attn_implementation"] = attention
    if task is None:
        architecture = _architecture(config_json)
        if architecture is not None:
            model = architecture._from_config(config, **keywords)
            return model, _task_of(architecture.__name__)
        task = Task.FEATURE_EXTRACTION
        for guess in (Task.CAUSAL_LM, Task.SEQ2SEQ_LM, Task.IMAGE_CLASSIFICATION):
            if _head(guess, config) is not None:
                task = guess
                break
        notebook.assume(
            AssumptionCode.MODEL_DEFAULT, "model.task", task, "absent: the usual head of this model"
        )
    head = _head(task, config)
    if head is None:
        raise UnsupportedJobError(
            f"model.task: '{task}' is not modelled for model type '{config.model_type}'",
            code=UnknownCode.TASK,
            path="model.task",
        )
    return head._from_config(config, **keywords), task


def _head(task: Task, config: Any) -> Any:
    """Return the model class with the head of *task*, or None."""
    for name in HEADS.get(task, ()):
        mapping = getattr(transformers, name)._model_mapping
        if type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, tuple) else found
    return None


def _architecture(config_json: Mapping[str, Any]) -> Any:
    """Return the class `architectures` names, if transformers has it."""
    names = config_json.get("architectures")
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        return None
    found = getattr(transformers, names[0], None)
    is_model = isinstance(found, type) and issubclass(found, PreTrainedModel)
    return found if is_model else None


TASK_SUFFIXES = (
    ("ForCausalLM", Task.CAUSAL_LM),
    ("LMHeadModel", Task.CAUSAL_LM),
    ("ForMaskedLM", Task.MASKED_LM),
    ("ForSequenceClassification", Task.SEQUENCE_CLASSIFICATION),
    ("ForTokenClassification", Task.TOKEN_CLASSIFICATION),
    ("ForQuestionAnswering", Task.QUESTION_ANSWERING),
    ("ForImageClassification", Task.IMAGE_CLASSIFICATION),
    ("ForSemanticSegmentation", Task.SEMANTIC_SEGMENTATION),
    ("ForVideoClassification", Task.VIDEO_CLASSIFICATION),
    ("WhisperForConditionalGeneration", Task.SPEECH_RECOGNITION),
    ("ForConditionalGeneration", Task.SEQ2SEQ_LM),
    ("ForCTC", Task.SPEECH_RECOGNITION),
    ("ForPreTraining", Task.PRE_TRAINING),
)


def _task_of(class_name: str) -> Task:
    for suffix, task in TASK_SUFFIXES:
        if class_name.endswith(suffix):
            return task
    return Task.FEATURE_EXTRACTION


def _attention(spec: JobSpec, notebook: Notebook) -> str | None:
    """Return transformers' name of the attention to build with; None: its own default."""
    version = parse_version(spec.framework_version or "")
    match spec.model.attention:
        case Attention.EAGER:
            return "eager"
        case Attention.FLASH_ATTENTION_2:
            notebook.assume(
                AssumptionCode.ATTENTION_BACKEND,
                "model.attention",
                "flash",
                "the flash_attn package keeps what SDPA's flash kernel keeps",
            )
            return "sdpa"
        case Attention.FLEX:
            notebook.unknown(
                UnknownCode.FEATURE, "model.attention", "flex attention is traced as sdpa"
            )
            return "sdpa"
        case Attention.SDPA:
            return "sdpa"
        case None if version is not None and version < (2, 0):
            return "eager"
        case None:
            return None


def _repair(config: Any, spec: JobSpec) -> None:
    """Give token ids that no shape depends on, which configurations may leave out."""
    text = config.get_text_config()
    for part in {id(config): config, id(text): text}.values():
        if getattr(part, "pad_token_id", None) is None:
            part.pad_token_id = 0
        if getattr(part, "decoder_start_token_id", None) is None and config.is_encoder_decoder:
            part.decoder_start_token_id = 0
        if hasattr(part, "use_cache") and not spec.training.use_cache:
            part.use_cache = False
