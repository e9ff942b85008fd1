"""One training job for every model of torchvision, timm and transformers.

    zoos installed here -> cases, one a line

Runs in a process of its own, which imports the zoos. Transformers are built from the defaults of
their configuration class, with few layers: what can be traced does not depend on their number.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import orjson

BATCH = 2
LENGTH = 64
LAYERS = 2

DEPTHS = frozenset(
    [
        "decoder_layers",
        "depth",
        "encoder_layers",
        "n_layer",
        "n_layers",
        "num_blocks",
        "num_decoder_layers",
        "num_encoder_layers",
        "num_hidden_layers",
        "num_layers",
        "num_mem_blocks",
    ]
)
"""Keys of configurations that say how often a layer is repeated."""

WORDS = {
    "causal-lm": ("CAUSAL_LM",),
    "masked-lm": ("MASKED_LM",),
    "seq2seq-lm": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "sequence-classification": ("SEQUENCE_CLASSIFICATION", "AUDIO_CLASSIFICATION"),
    "token-classification": ("TOKEN_CLASSIFICATION", "AUDIO_FRAME_CLASSIFICATION"),
    "question-answering": ("QUESTION_ANSWERING", "DOCUMENT_QUESTION_ANSWERING"),
    "image-classification": ("IMAGE_CLASSIFICATION",),
    "object-detection": ("OBJECT_DETECTION", "ZERO_SHOT_OBJECT_DETECTION"),
    "semantic-segmentation": (
        "SEMANTIC_SEGMENTATION",
        "IMAGE_SEGMENTATION",
        "INSTANCE_SEGMENTATION",
        "UNIVERSAL_SEGMENTATION",
    ),
    "image-text-to-text": ("IMAGE_TEXT_TO_TEXT",),
    "speech-recognition": ("SPEECH_SEQ_2_SEQ", "CTC", "RNNT", "TDT"),
    "zero-shot-image-classification": ("ZERO_SHOT_IMAGE_CLASSIFICATION",),
    "video-classification": ("VIDEO_CLASSIFICATION",),
    "pre-training": ("PRETRAINING",),
}
"""Tasks of a JobSpec, and the tables of transformers that hold their heads."""

WITHOUT_A_WORD = (
    "MULTIPLE_CHOICE",
    "NEXT_SENTENCE_PREDICTION",
    "MASKED_IMAGE_MODELING",
    "DEPTH_ESTIMATION",
    "VISUAL_QUESTION_ANSWERING",
    "AUDIO_XVECTOR",
    "TIME_SERIES_PREDICTION",
    "TABLE_QUESTION_ANSWERING",
)
"""Tables of heads a JobSpec can only name by `model.config.architectures`."""

DEPTHS_TRIED = (LAYERS, 4, 6, 8, 12)
"""The fewest layers that have every kind of layer the whole model has are taken."""

PICKS = (
    "backbone_out_indices",
    "intermediate_layers_indices",
    "neck_hidden_sizes",
    "out_indices",
    "vision_feature_layers",
)
"""Keys that name layers by their number."""

LENGTHS = {"kosmos-2.5": 2048, "perceiver": 2048, "reformer": 4096}
"""Models that take one length only in training, or whose image has more tokens."""

GAPS: dict[str, dict[str, Any]] = {
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "xmod": {"languages": ["en_XX"]},
    "nemotron": {"num_key_value_heads": 8},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "ministral": {"head_dim": 128},
    "reformer": {"is_decoder": True},
    "beit": {"out_indices": [3, 5, 7, 11]},
    "wav2vec2-bert": {"vocab_size": 32},
    "wav2vec2-conformer": {"vocab_size": 32},
    "deepseek_v2": {"num_experts_per_tok": 6, "moe_intermediate_size": 1408},
    "bamba": {"attn_layer_indices": [1]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"], "num_hidden_layers": 2},
    **{
        name: {"vision_config": {"model_type": "siglip_vision_model", "image_size": 896}}
        for name in ("gemma3", "shieldgemma2")
    },
    **{
        name: {
            "vision_config": {
                "model_type": "clip_vision_model",
                "image_size": 336,
                "patch_size": 14,
                "num_hidden_layers": 2,
            }
        }
        for name in ("llava_next", "llava_next_video")
    },
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_hidden_layers": 2},
}
"""What default configurations leave out and every published one has."""

PARTS: dict[str, dict[str, Any]] = {
    "encoder-decoder": {
        "encoder": {"model_type": "bert", "num_hidden_layers": LAYERS},
        "decoder": {
            "model_type": "bert",
            "num_hidden_layers": LAYERS,
            "is_decoder": True,
            "add_cross_attention": True,
        },
    },
    "vision-encoder-decoder": {
        "encoder": {"model_type": "vit", "num_hidden_layers": LAYERS},
        "decoder": {
            "model_type": "gpt2",
            "n_layer": LAYERS,
            "add_cross_attention": True,
        },
    },
    "speech-encoder-decoder": {
        "encoder": {"model_type": "wav2vec2", "num_hidden_layers": LAYERS},
        "decoder": {
            "model_type": "bert",
            "num_hidden_layers": LAYERS,
            "is_decoder": True,
            "add_cross_attention": True,
        },
    },
    "vision-text-dual-encoder": {
        "vision_config": {"model_type": "vit", "num_hidden_layers": LAYERS},
        "text_config": {"model_type": "bert", "num_hidden_layers": LAYERS},
    },
}
"""Models that are made of others and have no defaults."""


def cases() -> Iterator[dict[str, Any]]:
    """Yield every case."""
    yield from zoo_cases()
    yield from transformers_cases()


def zoo_cases() -> Iterator[dict[str, Any]]:
    """Yield a case for every model of torchvision and timm that is no quantised one."""
    import timm
    import torchvision

    zoo = torchvision.models
    modules = {
        "image-classification": zoo,
        "object-detection": zoo.detection,
        "semantic-segmentation": zoo.segmentation,
        "video-classification": zoo.video,
        "optical-flow": zoo.optical_flow,
    }
    for task, module in modules.items():
        for name in zoo.list_models(module=module):
            yield case(f"torchvision/{task}", name, {"source": "torchvision", "name": name})
    for name in timm.list_models():
        yield case("timm/image-classification", name, {"source": "timm", "name": name})


def transformers_cases() -> Iterator[dict[str, Any]]:
    """Yield a case for every head of transformers that can be trained."""
    from transformers.models.auto import modeling_auto

    seen: set[tuple[str, str]] = set()
    named: set[tuple[str, str]] = set()
    for task, tables in [*WORDS.items(), *((table, (table,)) for table in WITHOUT_A_WORD)]:
        for table in tables:
            heads = getattr(modeling_auto, f"MODEL_FOR_{table}_MAPPING_NAMES")
            for model_type, classes in heads.items():
                head = classes if isinstance(classes, str) else classes[0]
                if (model_type, head) in seen:
                    continue
                seen.add((model_type, head))
                config = {"model_type": model_type, **small(model_type)}
                word = {"task": task}
                if task not in WORDS or (task, model_type) in named:
                    word, config["architectures"] = {}, [head]
                named.add((task, model_type))
                name = f"{model_type}/{head}"
                model = {"source": "huggingface", "name": model_type, "config": config, **word}
                yield case(f"transformers/{task}", name, model, length=length(model_type))


def length(model_type: str) -> int:
    """Return a sequence length the default configuration of *model_type* takes."""
    from transformers import CONFIG_MAPPING

    if model_type in LENGTHS:
        return LENGTHS[model_type]
    try:
        text = CONFIG_MAPPING[model_type]().get_text_config()
    except Exception:
        return LENGTH
    most = getattr(text, "max_position_embeddings", None)
    return min(LENGTH, most) if isinstance(most, int) and most > 0 else LENGTH


def small(model_type: str) -> dict[str, Any]:
    """Return the keys that make the default configuration of *model_type* a shallow one.

    Some defaults name no size at all: `GAPS` fills those in.
    """
    from transformers import CONFIG_MAPPING

    if model_type in PARTS:
        return PARTS[model_type]
    kind, gaps = CONFIG_MAPPING[model_type], GAPS.get(model_type, {})
    for layers in DEPTHS_TRIED:
        try:
            keys = {**shallow(kind(**gaps), layers), **gaps}
            if kinds_of_layers(kind(**keys)) == kinds_of_layers(kind(**gaps)):
                return keys
        except Exception:
            continue
    return gaps


def kinds_of_layers(config: Any) -> set[str]:
    """Return the kinds of layers of *config*, if they are of several."""
    text = config.get_text_config()
    kinds = getattr(text, "layer_types", None) or getattr(text, "layers_block_type", None) or ()
    return {str(kind) for kind in kinds}


def shallow(config: Any, layers: int) -> dict[str, Any]:
    """Return the depths of *config* and of its parts, cut to a few layers.

    A configuration that picks layers by their number is left as it is.
    """
    picks = any(getattr(config, name, None) for name in PICKS)
    keys: dict[str, Any] = {
        name: layers
        for name in DEPTHS
        if not picks and type(value := getattr(config, name, None)) is int and value > layers
    }
    for name in config.sub_configs:
        part = getattr(config, name, None)
        inner = shallow(part, layers) if part is not None and hasattr(part, "sub_configs") else {}
        if part is not None and inner:
            keys[name] = {"model_type": part.model_type, **inner} if part.model_type else inner
    return keys


def case(group: str, name: str, model: dict[str, Any], *, length: int | None = None) -> Any:
    """Return the case of *model*; `GROUP/NAME` is its id."""
    size = {} if length is None else {"sequenceLength": length}
    spec = {
        "framework": "pytorch",
        "model": model,
        "input": {"batchSize": BATCH, **size},
        "training": {"optimizer": {"name": "sgd", "momentum": 0.9}},
    }
    return {"id": f"{group}/{name}", "spec": spec}


def main() -> None:
    """Print the cases."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    warnings.simplefilter("ignore")
    for one in cases():
        print(orjson.dumps(one).decode())


if __name__ == "__main__":
    main()
