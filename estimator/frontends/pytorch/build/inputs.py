"""What a transformers model is fed: shapes by modality and task.

    JobSpec, model -> Inputs

Shape letters: B batch, S sequence, T target, C channels, H height, W width, F frames.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from estimator.errors import UnsupportedJobError
from estimator.frontends.pytorch.build.job import Batch, Shapes, stand_in
from estimator.frontends.pytorch.dtypes import WEIGHTS
from estimator.frontends.pytorch.notebook import Notebook
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobPhase, JobSpec, Task

DEFAULT_LENGTH = 512
DEFAULT_TARGET = 128
SAMPLES = 160_000
"""Ten seconds of 16 kHz sound."""

GENERATIVE = (Task.SEQ2SEQ_LM, Task.SPEECH_RECOGNITION, Task.PRE_TRAINING, Task.MASKED_LM)
"""Tasks whose labels are what the decoder of an encoder-decoder model is fed, shifted."""

FRAMES_FIRST = ("feature_projection_input_dim", "input_feat_per_channel")
"""Keys of models that take frames before features, and name the features so."""

Maker = Callable[[Shapes], Batch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """How to make a batch, and which of its keys only training needs."""

    make: Maker
    targets: tuple[str, ...]


def make_inputs(spec: JobSpec, model: Any, task: Task, notebook: Notebook) -> Inputs:
    """Return what feeds *model* for *task*.

    Raises:
        UnsupportedJobError: if the model takes something that is not modelled.
    """
    parameters = set(inspect.signature(model.forward).parameters)
    reader = _Reader(spec, model.config, notebook)
    makers: list[Maker] = [_main(model, parameters, task)(reader)]
    if spec.phase is JobPhase.TRAIN:
        makers.append(_targets(reader, task, parameters))
    if "decoder_input_ids" in parameters and (
        "labels" not in parameters or spec.phase is JobPhase.INFER
    ):
        makers.append(_decoder(reader))
    if spec.phase is JobPhase.TRAIN and "return_loss" in parameters:
        makers.append(lambda _: {"return_loss": True})

    def make(shapes: Shapes) -> Batch:
        batch: Batch = {}
        for maker in makers:
            batch.update(maker(shapes))
        return batch

    return Inputs(make=make, targets=("labels", "start_positions", "end_positions"))


class _Reader:
    """Looks sizes up in the spec, then in the model's configuration, and notes defaults."""

    def __init__(self, spec: JobSpec, config: Any, notebook: Notebook) -> None:
        self.spec = spec
        self.config = config
        self.text = config.get_text_config()
        self.notebook = notebook
        self.dtype = WEIGHTS[spec.training.precision]

    def length(self) -> int:
        given = self.spec.input.sequence_length
        if given is not None:
            return given
        most = getattr(self.text, "max_position_embeddings", None)
        length = min(DEFAULT_LENGTH, most) if isinstance(most, int) and most > 0 else DEFAULT_LENGTH
        self.notebook.assume(
            AssumptionCode.LENGTH, "input.sequenceLength", length, "absent: a usual length"
        )
        return length

    def target(self, source: int) -> int:
        given = self.spec.input.target_length
        if given is not None:
            return given
        length = min(DEFAULT_TARGET, source)
        most = getattr(self.config, "max_target_positions", None)
        length = min(length, most) if isinstance(most, int) and most > 0 else length
        self.notebook.assume(
            AssumptionCode.LENGTH, "input.targetLength", length, "absent: a usual length"
        )
        return length

    def image(self) -> tuple[int, int, int]:
        if self.spec.input.image_size is not None:
            return self.spec.input.image_size
        vision = getattr(self.config, "vision_config", self.config)
        size = getattr(vision, "image_size", None) or 224
        height, width = (size, size) if isinstance(size, int) else tuple(size)[-2:]
        channels = getattr(vision, "num_channels", None) or 3
        self.notebook.assume(
            AssumptionCode.MODEL_DEFAULT,
            "input.imageSize",
            f"{channels}x{height}x{width}",
            "absent: the model's own size",
        )
        return channels, height, width


def _main(model: Any, parameters: set[str], task: Task) -> Callable[[_Reader], Maker]:
    """Return what makes the model's main input."""
    if task is Task.VIDEO_CLASSIFICATION or (
        "pixel_values" in parameters and hasattr(model.config, "num_frames")
    ):
        return _video
    if "input_features" in parameters:
        return _spectrogram
    if "input_values" in parameters:
        return _sound
    if "pixel_values" in parameters and "input_ids" not in parameters:
        return _image
    if "pixel_values" in parameters and "return_loss" in parameters:
        return _image_and_text
    if "input_ids" in parameters and not (
        "pixel_values" in parameters and hasattr(model.config, "vision_config")
    ):
        return _text
    raise UnsupportedJobError(
        f"model.task: inputs of '{model.config.model_type}' for '{task}' are not modelled",
        code=UnknownCode.TASK,
        path="model.task",
    )


def _text(reader: _Reader) -> Maker:
    length = reader.length()
    padded = reader.spec.input.padding_mask

    def make(shapes: Shapes) -> Batch:
        size = (shapes.batch_size, shapes.sequence_length or length)
        batch = {"input_ids": stand_in(*size, dtype=torch.int64)}
        if padded:
            batch["attention_mask"] = stand_in(*size, dtype=torch.int64)
        return batch

    return make


def _image(reader: _Reader) -> Maker:
    size = reader.image()
    return lambda shapes: {"pixel_values": stand_in(shapes.batch_size, *size, dtype=reader.dtype)}


def _image_and_text(reader: _Reader) -> Maker:
    image, text = _image(reader), _text(reader)
    return lambda shapes: {**image(shapes), **text(shapes)}


def _video(reader: _Reader) -> Maker:
    size = reader.image()
    frames = reader.spec.input.video_frames
    if frames is None:
        frames = int(getattr(reader.config, "num_frames", 16))
    return lambda shapes: {
        "pixel_values": stand_in(shapes.batch_size, frames, *size, dtype=reader.dtype)
    }


def _spectrogram(reader: _Reader) -> Maker:
    bins = getattr(reader.config, "num_mel_bins", 80)
    positions = getattr(reader.config, "max_source_positions", 1500)
    frames = reader.spec.input.audio_frames
    if frames is None:
        frames = 2 * positions
        reader.notebook.assume(
            AssumptionCode.MODEL_DEFAULT, "input.audioFrames", frames, "absent: the model's own"
        )
    size = (bins, frames)
    for name in FRAMES_FIRST:
        if isinstance(getattr(reader.config, name, None), int):
            size = (frames, getattr(reader.config, name))
    return lambda shapes: {"input_features": stand_in(shapes.batch_size, *size, dtype=reader.dtype)}


def _sound(reader: _Reader) -> Maker:
    samples = reader.spec.input.audio_frames
    if samples is None:
        samples = SAMPLES
        reader.notebook.assume(
            AssumptionCode.LENGTH, "input.audioFrames", samples, "absent: ten seconds at 16 kHz"
        )
    return lambda shapes: {"input_values": stand_in(shapes.batch_size, samples, dtype=reader.dtype)}


def _decoder(reader: _Reader) -> Maker:
    target = reader.target(DEFAULT_TARGET)
    return lambda shapes: {
        "decoder_input_ids": stand_in(shapes.batch_size, target, dtype=torch.int64)
    }


def _targets(reader: _Reader, task: Task, parameters: set[str]) -> Maker:
    """Return what makes the labels of *task*."""
    whole = torch.int64

    def make(shapes: Shapes) -> Batch:
        batch = shapes.batch_size
        if task is Task.QUESTION_ANSWERING:
            names = ("start_positions", "end_positions")
            return {name: stand_in(batch, dtype=whole) for name in names}
        if "labels" not in parameters:
            return {}
        if task is Task.REGRESSION:
            return {"labels": stand_in(batch)}
        if task in GENERATIVE and "decoder_input_ids" in parameters:
            source = shapes.sequence_length or reader.spec.input.sequence_length or DEFAULT_TARGET
            return {"labels": stand_in(batch, reader.target(source), dtype=whole)}
        if task is Task.SPEECH_RECOGNITION:
            return {"labels": stand_in(batch, reader.target(DEFAULT_TARGET), dtype=whole)}
        if task is Task.SEMANTIC_SEGMENTATION:
            _, height, width = reader.image()
            return {"labels": stand_in(batch, height, width, dtype=whole)}
        if task in (Task.CAUSAL_LM, Task.MASKED_LM, Task.TOKEN_CLASSIFICATION, Task.PRE_TRAINING):
            length = shapes.sequence_length or reader.length()
            labels = {"labels": stand_in(batch, length, dtype=whole)}
            for name in ("next_sentence_label", "sentence_order_label"):
                if name in parameters:
                    labels[name] = stand_in(batch, dtype=whole)
            return labels
        return {"labels": stand_in(batch, dtype=whole)}

    return make
