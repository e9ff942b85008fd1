"""Models whose sizes, inputs or construction depend on values: one of each kind."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.trace import AT_MOST, Phase, Trace
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import allocated_by, fault, job, torchvision

pytestmark = pytest.mark.torch

SMALL_IMAGE = {"imageSize": [3, 128, 128]}


def transformer(
    task: str | None, config: dict[str, Any], *, batch: int = 2, **rest: Any
) -> dict[str, Any]:
    """Return a job of a small transformers model; *rest* goes into its input."""
    model = {"source": "huggingface", "name": "small", "config": config}
    if task is not None:
        model["task"] = task
    return job(model, batch, input=rest)


def assumptions(trace: Trace) -> dict[str, str]:
    """Return the values that were assumed, by path."""
    return {note.path: note.value for note in trace.assumptions}


def is_whole(trace: Trace) -> bool:
    """Return whether the trace is sound and reaches backward."""
    phases = {place.phase for place in trace.place_table}
    return fault(trace) is None and Phase.BACKWARD in phases


# --- torchvision ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("fcn_resnet50", SMALL_IMAGE),
        ("r3d_18", {"imageSize": [3, 32, 32], "videoFrames": 4}),
        ("raft_small", SMALL_IMAGE),
        ("ssdlite320_mobilenet_v3_large", {}),
        ("fcos_resnet50_fpn", SMALL_IMAGE),
        ("retinanet_resnet50_fpn", SMALL_IMAGE),
        ("keypointrcnn_resnet50_fpn", SMALL_IMAGE),
    ],
)
def test_every_folder_of_torchvision_trains(
    in_child: InChild, name: str, sizes: dict[str, Any]
) -> None:
    """Segmentation, video, flow and detection models run forward and backward."""
    trace = in_child(children.trace, job(torchvision(name), input=sizes))

    assert is_whole(trace)


def test_a_detector_is_at_the_limits_of_its_configuration(in_child: InChild) -> None:
    """Box heads see 512 samples an image, mask heads the quarter of them that may be objects."""
    document = job(torchvision("maskrcnn_resnet50_fpn"), input=SMALL_IMAGE)

    trace = in_child(children.trace, document)

    pooled = allocated_by(trace, "torchvision.roi_align")
    boxes, masks = 512 * 256 * 7 * 7 * 4, 128 * 256 * 14 * 14 * 4
    assert sum(pooled) == pytest.approx(2 * 2 * (boxes + masks), rel=0.05)


def test_the_objects_of_an_image_are_stated(in_child: InChild) -> None:
    """How many objects were assumed is among the assumptions: a spec has no word for it."""
    document = job(torchvision("fasterrcnn_resnet50_fpn"), input=SMALL_IMAGE)

    trace = in_child(children.trace, document)

    assert assumptions(trace)["model.task"] == "20 objects an image"
    assert AT_MOST in trace.facts


def test_only_the_weights_of_a_detector_are_certain(in_child: InChild) -> None:
    """A usual image has fewer boxes than a detector may take: nothing is rejected on those."""
    document = job(torchvision("ssdlite320_mobilenet_v3_large"))

    least, weights = in_child(children.least_and_weights, document)

    assert least == pytest.approx(weights, abs=32 << 20)


def test_a_detector_detects_without_targets(in_child: InChild) -> None:
    """Inference keeps as many boxes as the model may."""
    document = job(torchvision("fasterrcnn_resnet50_fpn"), input=SMALL_IMAGE, phase="infer")

    assert fault(in_child(children.trace, document)) is None


def test_quantised_models_are_refused_with_the_reason(in_child: InChild) -> None:
    """They run on a CPU: there is no GPU memory to estimate."""
    document = job({"source": "torchvision", "name": "quantized_resnet50"})

    refusal = in_child(children.refusal, document)

    assert refusal.kind == "unsupported"
    assert "CPU" in refusal.message


def test_another_task_than_the_models_own_is_refused(in_child: InChild) -> None:
    """A detector does not classify images; the message says what it does."""
    model = {**torchvision("ssd300_vgg16"), "task": "image-classification"}

    refusal = in_child(children.refusal, job(model))

    assert (refusal.code, refusal.path) == ("task", "model.task")
    assert "object-detection" in refusal.message


# --- transformers --------------------------------------------------------------------------------

TEXT = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100}
LAYERS = {"num_hidden_layers": 2}
VISION = {**LAYERS, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
CLIP = {**VISION, "model_type": "clip_vision_model", "image_size": 64, "patch_size": 16}
WAVE = {**VISION, "model_type": "wav2vec2", "vocab_size": 32, "conv_dim": [32] * 7}
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
XLM = {"model_type": "xlm", "emb_dim": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 100}


@pytest.mark.parametrize(
    ("task", "config", "sizes"),
    [
        ("masked-lm", XLM, {"sequenceLength": 32}),
        ("masked-lm", {"model_type": "ibert", **TEXT, **LAYERS}, {"sequenceLength": 32}),
        (
            "causal-lm",
            {"model_type": "jetmoe", **TEXT, **LAYERS, "kv_channels": 16},
            {"sequenceLength": 32},
        ),
        (
            "image-text-to-text",
            {"model_type": "llava", "vision_config": CLIP, "text_config": {**TEXT, **LAYERS}},
            {"sequenceLength": 32},
        ),
        (
            "image-text-to-text",
            {
                "model_type": "qwen2_vl",
                "vision_config": {"depth": 2, "embed_dim": 64, "num_heads": 4, "hidden_size": 64},
                "text_config": {
                    **TEXT,
                    **LAYERS,
                    "num_key_value_heads": 4,
                    "rope_parameters": MROPE,
                },
            },
            {"sequenceLength": 128, "imageSize": [3, 112, 112]},
        ),
        ("speech-recognition", WAVE, {"audioFrames": 4000, "targetLength": 8}),
        (
            "object-detection",
            {"model_type": "yolos", **VISION, "image_size": [64, 64], "patch_size": 16},
            {"imageSize": [3, 64, 64]},
        ),
        (
            None,
            {"model_type": "bert", **TEXT, **LAYERS, "architectures": ["BertForMultipleChoice"]},
            {"sequenceLength": 32},
        ),
        (
            None,
            {**WAVE, "architectures": ["Wav2Vec2ForAudioFrameClassification"]},
            {"audioFrames": 4000},
        ),
        (
            None,
            {**WAVE, "architectures": ["Wav2Vec2ForPreTraining"], "num_negatives": 4},
            {"audioFrames": 4000},
        ),
        (
            "semantic-segmentation",
            {"model_type": "mask2former", "num_queries": 10},
            {"imageSize": [3, 128, 128]},
        ),
    ],
    ids=[
        "lengths-are-read",
        "checks-for-nan",
        "experts-by-tolist",
        "image-and-text",
        "grid-of-patches",
        "ctc",
        "matching",
        "choices",
        "frames",
        "hidden-frames",
        "masks",
    ],
)
def test_models_that_read_values_train(
    in_child: InChild, task: str | None, config: dict[str, Any], sizes: dict[str, Any]
) -> None:
    """Each kind of reading is answered with what the values of a usual batch would say."""
    trace = in_child(children.trace, transformer(task, config, **sizes))

    assert is_whole(trace)


def test_what_the_library_cannot_train_is_refused_in_its_words(in_child: InChild) -> None:
    """A head without a loss of its own is unsupported, with the library's reason."""
    config = {
        "model_type": "dpt",
        **LAYERS,
        "architectures": ["DPTForDepthEstimation"],
        "backbone_out_indices": [0, 0, 1, 1],
    }

    refusal = in_child(children.refusal, transformer(None, config))

    assert refusal.kind == "unsupported"
    assert "Training is not implemented yet" in refusal.message


def test_a_loop_over_experts_routes_every_token_once_a_choice(in_child: InChild) -> None:
    """What all experts are given adds up to tokens times choices, spread evenly."""
    assert in_child(children.routed, 16, 8, 2) == [16 * 2 // 8] * 8


def test_numbers_sent_to_the_card_can_be_read_back(in_child: InChild) -> None:
    """A grid of patches that was moved to the card still has its values; a batch has none."""
    assert in_child(children.read_back) == (6, [[1, 2, 3]], "unsupported")


# --- recurrent layers ----------------------------------------------------------------------------


def test_an_lstm_keeps_what_a_fused_layer_keeps(in_child: InChild) -> None:
    """Seven values a step, layer, direction and unit, the last layer's output not among them."""
    sizes = in_child(children.recurrent_events, "LSTM", 2, True)

    steps, hidden, layers, directions = 3 * 5, 16, 2, 2
    reserve = steps * hidden * directions * (7 * layers - 1) * 4
    output = steps * hidden * directions * 4
    state = layers * directions * 3 * hidden * 4
    assert sizes == [output, state, state, reserve]


def test_a_gru_runs_as_one_call(in_child: InChild) -> None:
    """Six values a step; no cell state."""
    sizes = in_child(children.recurrent_events, "GRU", 1, False)

    steps, hidden = 3 * 5, 16
    assert sizes[-1] == steps * hidden * (6 - 1) * 4


def test_recurrent_layers_of_a_list_read_words(in_child: InChild) -> None:
    """An embedding first is fed whole numbers; the last step's output goes on."""
    entries = [
        {"type": "embedding", "in": 100, "out": 16},
        {"type": "lstm", "in": 16, "out": 32, "layers": 2},
        {"type": "gru", "in": 32, "out": 32, "sequences": True},
        {"type": "linear", "in": 32, "out": 5},
    ]
    entries[1]["sequences"] = True
    entries[2]["sequences"] = False
    model = {"source": "layers", "name": "words", "config": {"inputShape": [7], "layers": entries}}

    trace = in_child(children.trace, job(model))

    assert fault(trace) is None
    lstm = 4 * 32 * (16 + 32 + 2) + 4 * 32 * (32 + 32 + 2)
    gru = 3 * 32 * (32 + 32 + 2)
    assert trace.parameters == 100 * 16 + lstm + gru + 5 * 33
