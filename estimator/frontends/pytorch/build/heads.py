"""Which class of transformers a task means, and what is learnt with it.

task, configuration -> model class -> Head
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import torch
import transformers
from torch import nn
from transformers import GenerationMixin, PreTrainedModel

from estimator.spec import Task

TASKS: dict[Task, tuple[str, ...]] = {
    Task.CAUSAL_LM: ("AutoModelForCausalLM",),
    Task.MASKED_LM: ("AutoModelForMaskedLM",),
    Task.SEQ2SEQ_LM: ("AutoModelForSeq2SeqLM",),
    Task.SEQUENCE_CLASSIFICATION: (
        "AutoModelForSequenceClassification",
        "AutoModelForAudioClassification",
    ),
    Task.REGRESSION: ("AutoModelForSequenceClassification",),
    Task.TOKEN_CLASSIFICATION: (
        "AutoModelForTokenClassification",
        "AutoModelForAudioFrameClassification",
    ),
    Task.QUESTION_ANSWERING: (
        "AutoModelForQuestionAnswering",
        "AutoModelForDocumentQuestionAnswering",
        "AutoModelForTableQuestionAnswering",
        "AutoModelForVisualQuestionAnswering",
    ),
    Task.IMAGE_CLASSIFICATION: ("AutoModelForImageClassification",),
    Task.OBJECT_DETECTION: ("AutoModelForObjectDetection", "AutoModelForZeroShotObjectDetection"),
    Task.SEMANTIC_SEGMENTATION: (
        "AutoModelForSemanticSegmentation",
        "AutoModelForUniversalSegmentation",
        "AutoModelForInstanceSegmentation",
        "AutoModelForImageSegmentation",
    ),
    Task.IMAGE_TEXT_TO_TEXT: (
        "AutoModelForImageTextToText",
        "AutoModelForMultimodalLM",
        "AutoModelForVision2Seq",
    ),
    Task.SPEECH_RECOGNITION: (
        "AutoModelForSpeechSeq2Seq",
        "AutoModelForCTC",
        "AutoModelForRNNT",
        "AutoModelForTDT",
    ),
    Task.ZERO_SHOT_IMAGE_CLASSIFICATION: ("AutoModelForZeroShotImageClassification",),
    Task.VIDEO_CLASSIFICATION: ("AutoModelForVideoClassification",),
    Task.MASK_GENERATION: ("AutoModelForMaskGeneration",),
    Task.PRE_TRAINING: ("AutoModelForPreTraining",),
    Task.FEATURE_EXTRACTION: ("AutoModel",),
}
"""Task -> the auto classes that may have its head, first that knows the configuration."""


class Head(StrEnum):
    """What a model class is trained to say, which decides the labels it is given."""

    CAUSAL = "causal"
    MASKED = "masked"
    SEQUENCES = "sequences"
    LABEL = "label"
    NUMBER = "number"
    TOKENS = "tokens"
    FRAMES = "frames"
    SPAN = "span"
    ANSWERS = "answers"
    CHOICE = "choice"
    PIXELS = "pixels"
    DEPTH = "depth"
    PATCHES = "patches"
    BOXES = "boxes"
    MASKS = "masks"
    TRANSCRIPT = "transcript"
    SERIES = "series"
    PRE_TRAINING = "pre-training"
    FEATURES = "features"


SUFFIXES = (
    ("ForCausalLM", Head.CAUSAL),
    ("LMHeadModel", Head.CAUSAL),
    ("ForMaskedLM", Head.MASKED),
    ("WithLMHeadModel", Head.CAUSAL),
    ("ModelWithLMHead", Head.CAUSAL),
    ("ForAudioFrameClassification", Head.FRAMES),
    ("ForVisualQuestionAnswering", Head.ANSWERS),
    ("ForSequenceClassification", Head.LABEL),
    ("ForTokenClassification", Head.TOKENS),
    ("ForQuestionAnsweringSimple", Head.SPAN),
    ("ForQuestionAnswering", Head.SPAN),
    ("ForMultipleChoice", Head.CHOICE),
    ("ForMaskedImageModeling", Head.PATCHES),
    ("ForDepthEstimation", Head.DEPTH),
    ("ForSemanticSegmentation", Head.PIXELS),
    ("ForObjectDetection", Head.BOXES),
    ("ForInstanceSegmentation", Head.MASKS),
    ("ForUniversalSegmentation", Head.MASKS),
    ("ForSegmentation", Head.MASKS),
    ("ForCTC", Head.TRANSCRIPT),
    ("ForTDT", Head.TRANSCRIPT),
    ("ForRNNT", Head.TRANSCRIPT),
    ("ForPrediction", Head.SERIES),
    ("ForPreTraining", Head.PRE_TRAINING),
    ("ForSpeechSeq2Seq", Head.SEQUENCES),
    ("ForConditionalGeneration", Head.SEQUENCES),
    ("EncoderDecoderModel", Head.SEQUENCES),
    ("Classification", Head.LABEL),
    ("ForXVector", Head.LABEL),
    ("ForNextSentencePrediction", Head.LABEL),
)
"""How the names of model classes end, first match first."""

HEADS: dict[Task, Head] = {
    Task.CAUSAL_LM: Head.CAUSAL,
    Task.MASKED_LM: Head.MASKED,
    Task.SEQ2SEQ_LM: Head.SEQUENCES,
    Task.SEQUENCE_CLASSIFICATION: Head.LABEL,
    Task.REGRESSION: Head.NUMBER,
    Task.TOKEN_CLASSIFICATION: Head.TOKENS,
    Task.QUESTION_ANSWERING: Head.SPAN,
    Task.IMAGE_CLASSIFICATION: Head.LABEL,
    Task.VIDEO_CLASSIFICATION: Head.LABEL,
    Task.OBJECT_DETECTION: Head.BOXES,
    Task.SEMANTIC_SEGMENTATION: Head.PIXELS,
    Task.IMAGE_TEXT_TO_TEXT: Head.CAUSAL,
    Task.SPEECH_RECOGNITION: Head.TRANSCRIPT,
    Task.PRE_TRAINING: Head.PRE_TRAINING,
}
"""Task -> head of classes whose names do not tell."""


def class_of(task: Task, config: Any) -> Any:
    """Return the model class with the head of *task*, or None."""
    for name in TASKS.get(task, ()):
        auto = getattr(transformers, name, None)
        if auto is not None and type(config) in auto._model_mapping:
            found = auto._model_mapping[type(config)]
            return found[0] if isinstance(found, tuple) else found
    return None


def named_class(config_json: Mapping[str, Any]) -> Any:
    """Return the class `architectures` names, if transformers has it; else None."""
    names = config_json.get("architectures")
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        return None
    found = getattr(transformers, names[0], None)
    is_model = isinstance(found, type) and issubclass(found, PreTrainedModel)
    return found if is_model else None


def head_of(model_class: type, task: Task | None) -> Head:
    """Return what *model_class* is trained to say."""
    if task is Task.REGRESSION:
        return Head.NUMBER
    for suffix, head in SUFFIXES:
        if model_class.__name__.endswith(suffix):
            return Head.ANSWERS if head is Head.SPAN and _is_asked_of_images(model_class) else head
    if task is None and issubclass(model_class, GenerationMixin):
        return Head.CAUSAL
    return HEADS.get(task, Head.FEATURES) if task is not None else Head.FEATURES


def _is_asked_of_images(model_class: Any) -> bool:
    """Return whether questions are about an image, so that answers are no spans of a text."""
    names = inspect.signature(model_class.forward).parameters
    return "pixel_values" in names and "start_positions" not in names


def separate_head(model: Any, config_json: Mapping[str, Any]) -> None:
    """Give *model* a head of its own where its configuration says so although its class ties.

    transformers 5 ties every T5, and keeps what a checkpoint stores apart (`tie_weights`).
    """
    if config_json.get("tie_word_embeddings") is not False:
        return
    head, words = model.get_output_embeddings(), model.get_input_embeddings()
    if isinstance(head, nn.Linear) and head.weight is getattr(words, "weight", None):
        head.weight = nn.Parameter(torch.empty_like(head.weight))
