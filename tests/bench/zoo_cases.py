"""One training job for every model of torchvision, timm and transformers.

    zoos installed here -> cases, one a line

Runs in a process of its own, which imports the zoos. Transformers are built from the defaults of
their configuration class, with few layers: what can be traced does not depend on their number.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import orjson

from tests.bench.zoo_gaps import GAPS, LENGTHS, PARTS

BATCH = 2
LENGTH = 64
LENGTH_WITH_IMAGE = 512
"""The tokens of an image are among them."""
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
    "deepstack_visual_indexes",
    "global_attn_indexes",
    "intermediate_layers_indices",
    "neck_hidden_sizes",
    "out_indices",
    "vision_feature_layer",
    "vision_feature_layers",
)
"""Keys that name layers by their number."""


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
                config = {"model_type": model_type, **small(model_type, head)}
                word = {"task": task}
                if task not in WORDS or (task, model_type) in named or not is_found(model_type):
                    word, config["architectures"] = {}, [head]
                named.add((task, model_type))
                name = f"{model_type}/{head}"
                model = {"source": "huggingface", "name": model_type, "config": config, **word}
                yield case(f"transformers/{task}", name, model, length=length(model_type, task))


def is_found(model_type: str) -> bool:
    """Return whether the auto classes know the configuration of *model_type* as its own."""
    from transformers import CONFIG_MAPPING, AutoModel

    name = CONFIG_MAPPING[model_type].__name__
    found = AutoModel._model_mapping._reverse_config_mapping[name]
    return bool(CONFIG_MAPPING[found].model_type == found)


def length(model_type: str, task: str) -> int:
    """Return a sequence length the default configuration of *model_type* takes."""
    from transformers import CONFIG_MAPPING

    if model_type in LENGTHS:
        return LENGTHS[model_type]
    usual = LENGTH_WITH_IMAGE if task == "image-text-to-text" else LENGTH
    try:
        text = CONFIG_MAPPING[model_type]().get_text_config()
    except Exception:
        return usual
    most = getattr(text, "max_position_embeddings", None)
    return min(usual, most) if isinstance(most, int) and most > 0 else usual


def small(model_type: str, head: str) -> dict[str, Any]:
    """Return the keys that make the default configuration of *model_type* a shallow one.

    The fewest layers are taken that have every kind of layer and of which *head* can be built.
    Some defaults name no size at all: `GAPS` fills those in.
    """
    from transformers import CONFIG_MAPPING

    if model_type in PARTS:
        return PARTS[model_type]
    kind = CONFIG_MAPPING[model_type]
    gaps = {**GAPS.get(model_type, {}), **GAPS.get(head, {})}
    for layers in DEPTHS_TRIED:
        try:
            keys = merged(shallow(kind(**gaps), layers), gaps)
            same = kinds_of_layers(kind(**keys)) == kinds_of_layers(kind(**gaps))
            if same and is_built(model_type, head, keys):
                return keys
        except Exception:
            continue
    return gaps


def merged(keys: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return *keys* and *more*, which has the last word, part by part."""
    made = dict(keys)
    for name, value in more.items():
        inner = made.get(name)
        if isinstance(inner, dict) and isinstance(value, dict):
            made[name] = merged(inner, value)
        else:
            made[name] = value
    return made


def is_built(model_type: str, head: str, keys: dict[str, Any]) -> bool:
    """Return whether *head* can be built without weights; packages that are missing do not count.

    Raises:
        Exception: whatever the library raises for a number of layers that it does not take.
    """
    import torch
    import transformers

    model, config = getattr(transformers, head), transformers.CONFIG_MAPPING[model_type](**keys)
    for name, part in config.sub_configs.items():
        if model.config_class is part:
            config = getattr(config, name)
    with suppress(ImportError), torch.device("meta"):
        model(config)
    return True


def kinds_of_layers(config: Any) -> set[str]:
    """Return the kinds of layers of *config*, if they are of several."""
    text = config.get_text_config()
    kinds = getattr(text, "layer_types", None) or getattr(text, "layers_block_type", None) or ()
    return {str(kind) for kind in kinds}


def shallow(config: Any, layers: int, *, picked: bool = False) -> dict[str, Any]:
    """Return the depths of *config* and of its parts, cut to a few layers.

    What picks layers by their numbers, and whose layers are *picked*, is left as it is.
    """
    picks = picked or any(
        isinstance(getattr(config, name, None), (list, tuple)) and getattr(config, name)
        for name in PICKS
    )
    keys: dict[str, Any] = {
        name: layers
        for name in DEPTHS
        if not picks and type(value := getattr(config, name, None)) is int and value > layers
    }
    for name in config.sub_configs:
        part = getattr(config, name, None)
        is_part = part is not None and hasattr(part, "sub_configs")
        inner = shallow(part, layers, picked=picks) if is_part else {}
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
