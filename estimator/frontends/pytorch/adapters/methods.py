"""From a spec's adapter to the configuration of a method of peft.

Adapter, Task -> PeftConfig
"""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from typing import Any

from peft import PeftType, PromptLearningConfig, TaskType
from peft.mapping import PEFT_TYPE_TO_CONFIG_MAPPING
from transformers import GenerationMixin

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.frontends.pytorch.adapters.sparse import no_mask
from estimator.notes import UnknownCode
from estimator.spec import Adapter, Task

REFUSED = {
    "xlora": "it mixes adapters that exist already",
    "shadow": "it trains a model of its own beside",
    "cartridge": "its tokens are initialised from a text",
    "cpt": "its tokens are initialised from a text",
}
"""Methods of peft that a spec cannot say enough of, and why."""

TASKS = {
    Task.CAUSAL_LM: TaskType.CAUSAL_LM,
    Task.SEQ2SEQ_LM: TaskType.SEQ_2_SEQ_LM,
    Task.SEQUENCE_CLASSIFICATION: TaskType.SEQ_CLS,
    Task.TOKEN_CLASSIFICATION: TaskType.TOKEN_CLS,
    Task.QUESTION_ANSWERING: TaskType.QUESTION_ANS,
    Task.FEATURE_EXTRACTION: TaskType.FEATURE_EXTRACTION,
}

PROMPT = 10
"""Tokens of an adaption prompt, as LLaMA-Adapter has them in every layer."""

STEPS = 1_000
"""Of a whole run, which AdaLoRA's schedule of ranks has to know: no memory depends on it."""

OF_THE_LIBRARY = frozenset(
    {
        "auto_mapping",
        "base_model_name_or_path",
        "inference_mode",
        "peft_type",
        "peft_version",
        "revision",
        "save_projection",
        "task_type",
        "tokenizer_name_or_path",
    }
)
"""Keys of a configuration that no memory depends on, or that would load something."""


def known_methods() -> tuple[str, ...]:
    """Return the methods of peft, and dora, that are modelled."""
    methods = {each.value.lower() for each in PEFT_TYPE_TO_CONFIG_MAPPING} - set(REFUSED)
    return tuple(sorted(methods | {"dora"}))


def config_of(adapter: Adapter, task: Task | None, model: Any) -> Any:
    """Return peft's configuration for *adapter* on *model*, which is for *task*.

    Raises:
        SpecError: for options the method does not have.
        UnsupportedJobError: for methods that are not known.
    """
    name = adapter.type.lower()
    kind = _kind(name)
    accepted = set(inspect.signature(kind).parameters)
    keywords = _common(adapter, accepted)
    wrong = sorted(set(adapter.options) - accepted)
    if wrong:
        raise SpecError([_option(each, accepted) for each in wrong])
    keywords |= {key: adapter.options[key] for key in adapter.options if key not in OF_THE_LIBRARY}
    if name == "dora":
        keywords["use_dora"] = True
    if name == "oft":
        _one_size(keywords)
    if issubclass(kind, PromptLearningConfig) and not keywords.get("num_virtual_tokens"):
        message = f"missing; '{name}' trains that many tokens"
        raise SpecError([Problem(path="adapter.virtualTokens", message=message)])
    if name == "adalora":
        keywords.setdefault("total_step", STEPS)
    if "adapter_layers" in accepted:
        keywords.setdefault("adapter_len", PROMPT)
        keywords.setdefault("adapter_layers", getattr(model.config, "num_hidden_layers", 1))
    if "task_type" in accepted and task in TASKS:
        keywords["task_type"] = TASKS[task]
    elif task is None and issubclass(kind, PromptLearningConfig):
        keywords["task_type"] = _task_of(model)  # where tokens go depends on it
    try:
        config = kind(**keywords)
    except (TypeError, ValueError) as error:
        raise SpecError([Problem(path="adapter", message=f"peft refuses it: {error}")]) from error
    if name == "shira":
        config.mask_fn = no_mask
    return config


def _task_of(model: Any) -> TaskType:
    """Return what *model* is for by its class, where the job does not say."""
    if not isinstance(model, GenerationMixin):
        return TaskType.FEATURE_EXTRACTION
    is_seq2seq = getattr(model.config, "is_encoder_decoder", False)
    return TaskType.SEQ_2_SEQ_LM if is_seq2seq else TaskType.CAUSAL_LM


def _one_size(keywords: dict[str, Any]) -> None:
    """Leave an orthogonal adapter its rank or the size of its blocks, which exclude each other."""
    other = "oft_block_size" if keywords.get("r") else "r"
    if not (keywords.get("r") and keywords.get("oft_block_size")):
        keywords[other] = keywords.get(other, 0)


def _kind(name: str) -> Any:
    """Return the class of the configuration of the method *name*."""
    method = "LORA" if name == "dora" else name.upper()
    if method not in PeftType.__members__ or name in REFUSED:
        close = get_close_matches(name, known_methods(), n=3)
        why = f": {REFUSED[name]}" if name in REFUSED else ""
        raise UnsupportedJobError(
            f"adapter.type: '{name}' is not modelled{why}",
            code=UnknownCode.ADAPTER,
            path="adapter.type",
            hint=f"close matches: {', '.join(close)}" if close else None,
        )
    return PEFT_TYPE_TO_CONFIG_MAPPING[PeftType[method]]


def _common(adapter: Adapter, accepted: set[str]) -> dict[str, Any]:
    """Return the keys every adapter of a spec has, under the names of the method."""
    given: dict[str, Any] = {}
    if "r" in accepted and "rank" in adapter.model_fields_set:
        given["r"] = adapter.rank
    if adapter.alpha is not None:
        alphas = sorted(key for key in accepted if key == "alpha" or key.endswith("_alpha"))
        given |= {key: adapter.alpha for key in alphas if key != "regularization_alpha"}
    if adapter.dropout:
        dropouts = sorted(key for key in accepted if key.endswith("dropout"))
        given |= {key: adapter.dropout for key in dropouts[:1]}
    if adapter.target_modules and "target_modules" in accepted:
        given["target_modules"] = list(adapter.target_modules)
    if adapter.trainable_modules and "modules_to_save" in accepted:
        given["modules_to_save"] = list(adapter.trainable_modules)
    if adapter.virtual_tokens:
        key = "adapter_len" if "adapter_len" in accepted else "num_virtual_tokens"
        if key in accepted:
            given[key] = adapter.virtual_tokens
    return given


def _option(name: str, accepted: set[str]) -> Problem:
    close = get_close_matches(name, sorted(accepted), n=3)
    hint = f"; close matches: {', '.join(close)}" if close else ""
    return Problem(path=f"adapter.options.{name}", message=f"not an option of this method{hint}")
