"""How large the inputs of a transformers model are.

    JobSpec, configuration -> sizes, and notes where a default was taken

The spec's word first, then the configuration's, then a usual size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Shapes
from estimator.frontends.pytorch.dtypes import WEIGHTS
from estimator.notes import AssumptionCode
from estimator.spec import JobSpec

DEFAULT_LENGTH = 512
DEFAULT_TARGET = 128
DEFAULT_IMAGE = 224
DETECTION_IMAGE = 640
GRID_IMAGE = 448
"""Edge of the images of models that take any size."""
REGIONS = 36
"""Regions an object detector finds for models of the time before patches."""
SAMPLES = 160_000
"""Ten seconds of 16 kHz sound."""
FRAMES = 1000
"""Ten seconds of a spectrogram with a window every 10 ms."""
VISION = (
    "vision_config",
    "vlm_config",
    "image_config",
    "encoder",
    "image_encoder",
    "backbone_config",
    "vq_config",
)
DECODERS = ("decoder", "decoder_config")
AUDIO = ("audio_config", "encoder_config", "encoder", "speech_config", "speech_encoder_config")
BINS = (
    "feature_projection_input_dim",
    "input_feat_per_channel",
    "num_mel_bins",
    "feature_size",
    "n_mels",
    "mel_bins",
    "input_dim",
    "input_feat_size",
)
"""Keys for the features of one frame of sound."""
FRAMES_OF_A_TOKEN = "audio_length_per_tok"
"""Key of models that hear while they write: sound is as long as the text."""
MERGES = ("num_windows", "scale_factor", "pixel_shuffle_factor")
"""Keys for how many patches along an edge are taken together."""


class Sizes:
    """Looks sizes up and notes defaults."""

    def __init__(
        self, spec: JobSpec, config: Any, notebook: Notebook, *, default_image: int = DEFAULT_IMAGE
    ) -> None:
        self.default_image = default_image
        self.spec = spec
        self.config = config
        self.text = config.get_text_config()
        self.notebook = notebook
        self.dtype = WEIGHTS[spec.training.precision]

    def find(self, *names: str, parts: tuple[str, ...] = (), default: int) -> int:
        """Return the first whole number under one of *names*, in the parts before the whole."""
        for config in self._parts(parts):
            for name in names:
                value = getattr(config, name, None)
                if type(value) is int and value > 0:
                    return value
        return default

    def _parts(self, names: tuple[str, ...]) -> Iterator[Any]:
        for name in names:
            yield from _inside(getattr(self.config, name, None))
        yield self.config

    def length(self, shapes: Shapes | None = None) -> int:
        """Return the tokens of a sample."""
        if shapes is not None and shapes.sequence_length:
            return shapes.sequence_length
        given = self.spec.input.sequence_length
        if given is not None:
            return given
        most = getattr(self.text, "max_position_embeddings", None)
        length = min(DEFAULT_LENGTH, most) if isinstance(most, int) and most > 0 else DEFAULT_LENGTH
        self.notebook.assume(
            AssumptionCode.LENGTH, "input.sequenceLength", length, "absent: a usual length"
        )
        return length

    def target(self, source: int = DEFAULT_TARGET) -> int:
        """Return the tokens a decoder is fed, for *source* tokens of the encoder."""
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

    def image(self, default: int | None = None, *, multiple: int = 1) -> tuple[int, int, int]:
        """Return channels, height and width of an image."""
        if self.spec.input.image_size is not None:
            channels, *edges = self.spec.input.image_size
            height, width = (max(multiple, edge // multiple * multiple) for edge in edges)
            return channels, height, width
        size: Any = None
        for part in self._parts(VISION):
            own: Any = getattr(part, "model_args", None) or {}
            size = size or getattr(part, "image_size", None) or own.get("img_size")
        size = size or default or self.default_image
        height, width = (size, size) if isinstance(size, int) else tuple(size)[-2:]
        height, width = (max(multiple, edge // multiple * multiple) for edge in (height, width))
        channels = self.find("num_channels", "in_channels", "in_chans", parts=VISION, default=3)
        self.notebook.assume(
            AssumptionCode.MODEL_DEFAULT,
            "input.imageSize",
            f"{channels}x{height}x{width}",
            "absent: the model's own size",
        )
        return channels, height, width

    def merged_edge(self) -> int:
        """Return the edge in pixels of the patches that are taken together, if any are."""
        times = self.find(*MERGES, parts=VISION, default=1)
        return self.patch() * times if times > 1 else 1

    def patch(self) -> int:
        """Return the edge of an image patch."""
        for part in self._parts(VISION):
            size = getattr(part, "patch_size", None)
            if isinstance(size, (list, tuple)) and size:
                return int(size[-1])
            if type(size) is int and size > 0:
                return size
        return 14

    def frames(self, default: int) -> int:
        """Return the frames of a clip."""
        given = self.spec.input.video_frames
        if given is not None:
            return given
        frames = self.find("num_frames", "frames_per_clip", parts=VISION, default=default)
        self.notebook.assume(
            AssumptionCode.MODEL_DEFAULT, "input.videoFrames", frames, "absent: the model's own"
        )
        return frames

    def samples(self) -> int:
        """Return the samples of a recording."""
        given = self.spec.input.audio_frames
        if given is not None:
            return given
        self.notebook.assume(
            AssumptionCode.LENGTH, "input.audioFrames", SAMPLES, "absent: ten seconds at 16 kHz"
        )
        return SAMPLES

    def codes(self) -> int:
        """Return the codes of one step of sound; 1 of text."""
        for config in (self.config, self.text, *self._parts(DECODERS)):
            count = getattr(config, "num_codebooks", None)
            if type(count) is int:
                return count
        decoder = getattr(self.config, "decoder_config", None)
        return getattr(decoder, "num_channels", None) or 1

    def bins(self) -> int:
        """Return the features of a frame of sound."""
        return self.find(*BINS, parts=AUDIO, default=80)

    def spectrogram(self, shapes: Shapes | None = None) -> tuple[int, int]:
        """Return features of a frame, and frames: those of the text where each token hears some."""
        bins = self.bins()
        frames = self.spec.input.audio_frames
        heard = self.find(FRAMES_OF_A_TOKEN, default=0)
        if heard:
            frames = heard * self.length(shapes)
        if frames is None:
            positions = self.find("max_source_positions", parts=AUDIO, default=0)
            frames = 2 * positions if positions else self.find("max_length", default=FRAMES)
            self.notebook.assume(
                AssumptionCode.MODEL_DEFAULT, "input.audioFrames", frames, "absent: the model's own"
            )
        return bins, frames


def _inside(config: Any) -> Iterator[Any]:
    """Yield *config* and the parts it is made of."""
    if config is not None:
        yield config
        for name in getattr(config, "sub_configs", {}):
            yield from _inside(getattr(config, name, None))
