"""What heads of transformers are fed and trained on: one of each kind of input and of target."""

from __future__ import annotations

from typing import Any

import pytest

from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import allocated_by
from tests.estimator.frontends.test_pytorch_zoo import assumptions, is_whole, transformer

pytestmark = pytest.mark.torch

WIDTHS = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
LAYERS = {"num_hidden_layers": 2}
SMALL = {**WIDTHS, **LAYERS}
TEXT = {**SMALL, "num_key_value_heads": 4, "vocab_size": 100}
XLSTM = {"model_type": "xlstm", "hidden_size": 512, "num_heads": 4, "num_blocks": 2}
QWEN = {
    "model_type": "qwen3_vl",
    "vision_config": {
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 4,
        "out_hidden_size": 64,
        "deepstack_visual_indexes": [0, 1],
    },
    "text_config": {**TEXT, "head_dim": 128},
}
CLIP: dict[str, Any] = {"videoFrames": 4, "imageSize": [3, 32, 32]}
VIDEOMAE = {
    "model_type": "videomae",
    **SMALL,
    "decoder_hidden_size": 32,
    "decoder_intermediate_size": 64,
    "decoder_num_attention_heads": 4,
    "decoder_num_hidden_layers": 1,
    "image_size": 32,
    "patch_size": 8,
    "num_frames": 4,
}
FLAVA = {
    "model_type": "flava",
    "text_config": {**SMALL, "vocab_size": 100},
    "image_config": {**SMALL, "image_size": 32, "patch_size": 16},
    "multimodal_config": SMALL,
    "hidden_size": 64,
    "projection_dim": 64,
}
CASES: dict[str, tuple[str | None, dict[str, Any], dict[str, Any]]] = {
    "part-of-a-configuration": (
        "causal-lm",
        {
            "model_type": "musicgen",
            "decoder": {
                "hidden_size": 64,
                "num_attention_heads": 4,
                "ffn_dim": 128,
                "num_hidden_layers": 2,
                "vocab_size": 64,
            },
        },
        {"sequenceLength": 16},
    ),
    "codes-of-a-step": (
        "speech-recognition",
        {
            "model_type": "kyutai_speech_to_text",
            **TEXT,
            "ffn_dim": 128,
            "head_dim": 16,
            "num_codebooks": 4,
            "codebook_vocab_size": 33,
            "audio_pad_token_id": 231,
        },
        {"sequenceLength": 16},
    ),
    "channels-as-samples": (
        "speech-recognition",
        {
            "model_type": "dia",
            "encoder_config": {**TEXT, "head_dim": 16},
            "decoder_config": {
                **TEXT,
                "head_dim": 16,
                "cross_hidden_size": 64,
                "cross_num_attention_heads": 4,
                "cross_num_key_value_heads": 4,
                "cross_head_dim": 16,
            },
        },
        {"sequenceLength": 16, "targetLength": 8},
    ),
    "questions": (
        "pre-training",
        {"model_type": "splinter", **SMALL, "vocab_size": 100, "question_token_id": 4},
        {"sequenceLength": 16},
    ),
    "codebook-of-patches": ("pre-training", FLAVA, {"sequenceLength": 16}),
    "regions-and-text": (
        "pre-training",
        {"model_type": "visual_bert", **SMALL, "vocab_size": 100, "visual_embedding_dim": 32},
        {"sequenceLength": 16},
    ),
    "horizon": (
        None,
        {
            "model_type": "timesfm",
            **SMALL,
            "head_dim": 16,
            "context_length": 64,
            "architectures": ["TimesFmModelForPrediction"],
        },
        {},
    ),
    "answers-about-an-image": (
        None,
        {
            "model_type": "blip",
            "vision_config": {**SMALL, "image_size": 32, "patch_size": 16},
            "text_config": {**SMALL, "vocab_size": 100, "encoder_hidden_size": 64},
            "architectures": ["BlipForQuestionAnswering"],
        },
        {"sequenceLength": 16, "targetLength": 8},
    ),
    "patches-in-a-row": (
        "image-text-to-text",
        {
            "model_type": "minicpmv4_6",
            "vision_config": {**SMALL, "image_size": 112, "patch_size": 14},
            "text_config": {**TEXT, "layer_types": ["full_attention"] * 2},
            "insert_layer_id": 0,
        },
        {"sequenceLength": 64, "imageSize": [3, 112, 112]},
    ),
    "labels-and-a-blank": (
        "speech-recognition",
        {
            "model_type": "parakeet_tdt",
            "vocab_size": 33,
            "blank_token_id": 32,
            "decoder_hidden_size": 32,
            "encoder_config": {**SMALL, "subsampling_conv_channels": 16},
        },
        {"audioFrames": 200, "targetLength": 8},
    ),
    "frames-stacked": (
        "speech-recognition",
        {
            "model_type": "granite_speech5_ctc",
            "vocab_size": 32,
            "encoder_config": {**TEXT, "head_dim": 16, "vocab_size": 32, "num_mel_bins": 20},
        },
        {"audioFrames": 256, "targetLength": 8},
    ),
}


@pytest.mark.parametrize(("task", "config", "sizes"), CASES.values(), ids=CASES.keys())
def test_each_kind_of_input_and_target_is_made(
    in_child: InChild, task: str | None, config: dict[str, Any], sizes: dict[str, Any]
) -> None:
    """What a head takes is made from the names of its forward and from its configuration."""
    trace = in_child(children.trace, transformer(task, config, **sizes))

    assert is_whole(trace)


def test_a_model_that_fails_with_its_cache_is_trained_without(in_child: InChild) -> None:
    """xLSTM writes over states that backward needs: a job that runs has no cache, and says so."""
    trace = in_child(children.trace, transformer("causal-lm", XLSTM, sequenceLength=64))

    assert is_whole(trace)
    assert assumptions(trace)["training.useCache"] == "false"


def test_a_usual_cache_stays_on(in_child: InChild) -> None:
    """Training does not mind transformers' own cache, so nothing is said of it."""
    config = {"model_type": "llama", **TEXT}

    trace = in_child(children.trace, transformer("causal-lm", config, sequenceLength=16))

    assert "training.useCache" not in assumptions(trace)


@pytest.mark.parametrize("tokens", [64, 128])
def test_as_many_tokens_stand_for_an_image_as_it_has_features(
    in_child: InChild, tokens: int
) -> None:
    """Features that are added to their tokens meet as many, however long the text is."""
    document = transformer(
        "image-text-to-text", QWEN, sequenceLength=tokens, imageSize=[3, 128, 128]
    )

    assert is_whole(in_child(children.trace, document))


def test_the_encoder_sees_the_patches_that_are_not_hidden(in_child: InChild) -> None:
    """Of 2 x 16 patches a clip, 28 are hidden: 4 are embedded, all 32 are decoded."""
    trace = in_child(children.trace, transformer("pre-training", VIDEOMAE, **CLIP))

    assert is_whole(trace)
    seen = [size for size in allocated_by(trace, "aten.index") if size]
    assert 2 * 4 * 64 * 4 in seen


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "omdet-turbo", "task_encoder_hidden_dim": 64}, "not implemented yet"),
        (
            {"model_type": "pp_doclayout_v3", "decoder_layers": 1},
            "does not support training",
        ),
    ],
    ids=["not-implemented", "in-words"],
)
def test_a_head_that_only_predicts_is_refused_as_such(
    in_child: InChild, config: dict[str, Any], reason: str
) -> None:
    """Of all that speaks against its inputs, that the library cannot train it comes first."""
    refusal = in_child(children.refusal, transformer("object-detection", config))

    assert (refusal.kind, refusal.path) == ("unsupported", "model.task")
    assert "the library cannot train this model" in refusal.message
    assert reason in refusal.message


def test_the_reason_is_that_of_the_form_that_got_furthest(in_child: InChild) -> None:
    """A transducer without a loss of its own fails there, not on forms that it never takes."""
    config = {
        "model_type": "nemotron_asr_streaming",
        "vocab_size": 33,
        "blank_token_id": 32,
        "decoder_hidden_size": 32,
        "encoder_config": {**SMALL, "subsampling_conv_channels": 16},
    }
    document = transformer("speech-recognition", config, audioFrames=200, targetLength=8)

    refusal = in_child(children.refusal, document)

    assert "ForCausalLMLoss" in refusal.message
