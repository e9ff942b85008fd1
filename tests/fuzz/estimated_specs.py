"""Specs for `estimates.py`: valid in form, absurd in content.

framework, Choices -> document
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.fuzz.choices import Choices
from tests.fuzz.files_models import symbols
from tests.fuzz.shaping import mutated

HUGE = (1, 2, 3, 7, 64, 1000, 65_537, 1 << 20)
"""Of what a spec bounds by a count."""
SIZES = (32, 224, 1, 3, 1 << 20)
NUMBERS = (
    *(0, 1, -1, 2, 3, 8, 64, 1000, 4096, 1 << 20, 10**6, 10**9, (1 << 31) - 1, 1 << 40, 1 << 62),
    *(0.5, -0.5, 1e300, "64", "", None, True, [64], {"a": 1}),
)
"""Of what is written in a configuration."""
NAMES = (
    "resnet50",
    "vit_b_16",
    "swin_t",
    "maskrcnn_resnet50_fpn",
    "nonsense",
    "__import__",
    "vgg11",
)
TIMM = ("resnet18", "vit_tiny_patch16_224", "convnext_atto", "nonsense", "../../etc", "swin_tiny")


def _llama(choices: Choices) -> dict[str, Any]:
    config = {
        "model_type": choices.pick(
            ("llama", "bert", "gpt2", "t5", "mixtral", "vit", "mamba", "whisper", "nonsense", "")
        ),
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 1000,
        "max_position_embeddings": 512,
    }
    for _ in range(choices.below(4)):
        key = choices.pick(tuple(config)[1:])
        config[key] = choices.pick(NUMBERS)
    extra = (
        *(
            "auto_map",
            "quantization_config",
            "rope_scaling",
            "rope_theta",
            "torch_dtype",
            "head_dim",
        ),
        *("num_local_experts", "layer_types", "hidden_act", "architectures", "pad_token_id"),
    )
    if choices.chance(3):
        config[choices.pick(extra)] = choices.pick(
            (*NUMBERS, {"AutoModel": "x.py--X"}, {"type": "linear", "factor": 1e9}, ["a"] * 1000)
        )
    return {"source": "huggingface", "name": "org/x", "task": "causal-lm", "config": config}


def _layers(choices: Choices) -> dict[str, Any]:
    kinds: tuple[dict[str, Any], ...] = (
        {"type": "linear", "in": 64, "out": 64},
        {"type": "linear", "in": 1 << 24, "out": 1 << 24},
        {"type": "conv", "in": 3, "out": 64, "kernel": 3},
        {"type": "activation", "name": "relu"},
        {"type": "flatten"},
        {"type": "nonsense"},
        {"type": "lstm", "in": 64, "hidden": 64},
        {"type": "batchNorm", "features": 64},
        {"type": "pool", "kind": "max", "kernel": 2},
    )
    layers = [choices.pick(kinds) for _ in range(1 + choices.below(6))]
    layers *= choices.pick((1, 1, 1, 100, 4096, 10_000))
    shape = choices.pick(([64], [3, 32, 32], [1 << 24], [], [3, 1 << 20, 1 << 20], [-1], "x"))
    config = {"inputShape": shape, "layers": layers}
    return {"source": "layers", "name": "net", "config": mutated(config, choices)}


def _zoo(choices: Choices) -> dict[str, Any]:
    source = choices.pick(("torchvision", "timm"))
    name = choices.pick(NAMES if source == "torchvision" else TIMM)
    model: dict[str, Any] = {"source": source, "name": name}
    if choices.chance(2):
        model["numLabels"] = choices.pick(HUGE)
    if choices.chance(3):
        option = choices.pick(
            ("width_per_group", "img_size", "depth", "weights", "__class__", "self")
        )
        model["options"] = {option: choices.pick(NUMBERS)}
    return model


def _keras(choices: Choices) -> dict[str, Any]:
    units = choices.pick(NUMBERS)
    dense = {
        "class_name": "Dense",
        "config": {"name": "d", "units": units, "activation": choices.pick(("relu", "x", None))},
    }
    layer = choices.pick(
        (
            dense,
            {"class_name": "Lambda", "config": {"name": "l", "function": ["4wEAAAA=", None, None]}},
            {"class_name": "Embedding", "config": {"input_dim": units, "output_dim": units}},
            {"class_name": "../../x", "module": "os", "config": {"name": "system"}},
        )
    )
    first = {"class_name": "InputLayer", "config": {"batch_shape": [None, 64], "name": "in"}}
    layers = [first, *[layer] * choices.pick((1, 2, 100, 3000))]
    document = {"class_name": "Sequential", "config": {"name": "s", "layers": layers}}
    if choices.chance(2):
        document = mutated(document, choices)
    config = document if isinstance(document, dict) else {}
    by_name = {"source": "keras", "name": choices.pick(("ResNet50", "VGG16", "nonsense"))}
    return choices.pick(({"source": "keras", "name": "net", "config": config}, by_name))


def _symbol(choices: Choices) -> dict[str, Any]:
    config = mutated(choices.pick(symbols()), choices, donors=symbols())
    by_name = {"source": "mxnet", "name": choices.pick(("resnet18_v1", "vgg16", "nonsense"))}
    inline = {"source": "mxnet", "name": "m", "config": config if isinstance(config, dict) else {}}
    return choices.pick((inline, by_name))


def _onnx(choices: Choices) -> dict[str, Any]:
    graph = {
        "format": "onnx",
        "opset": 17,
        "producer": "x",
        "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 8]}],
        "tensors": [
            {"name": "w", "dtype": "float32", "shape": [16, 8]},
            {"name": "s", "dtype": "int64", "shape": [2], "values": [-1, 4]},
        ],
        "nodes": [
            {"op": "Gemm", "inputs": [0, 1], "outputs": 1, "attributes": {"transB": 1}},
            {"op": "Reshape", "inputs": [3, 2], "outputs": 1},
            {"op": "Softmax", "inputs": [4], "outputs": 1, "attributes": {"axis": 1}},
        ],
        "outputs": [5],
    }
    changed = mutated(graph, choices)
    config = changed if isinstance(changed, dict) else graph
    return {"source": "file", "name": "net.onnx", "config": config}


Model = Callable[[Choices], "dict[str, Any]"]
FRAMEWORKS: Mapping[str, tuple[Model, ...]] = {
    "pytorch": (_llama, _layers, _zoo, _onnx),
    "mxnet": (_symbol,),
    "jax": (_keras,),
    "tensorflow": (_keras,),
}
"""Framework -> the models that it is asked about."""


def document_of(framework: str, choices: Choices) -> dict[str, Any]:
    """Return a spec; not every one is valid."""
    fed: dict[str, Any] = {"batchSize": choices.pick(HUGE)}
    if choices.chance(2):
        fed["imageSize"] = [choices.pick((3, 3, 1, 1 << 20)), *(choices.pick(SIZES),) * 2]
    if choices.chance(2):
        fed["sequenceLength"] = choices.pick((*HUGE, 1 << 24))
    if choices.chance(6):
        fed["maxNewTokens"] = choices.pick(HUGE)
    document: dict[str, Any] = {
        "framework": framework,
        "model": choices.pick(FRAMEWORKS[framework])(choices),
        "input": fed,
        "phase": choices.pick(("train", "train", "infer")),
        "training": _training(choices),
    }
    if framework == "pytorch" and choices.chance(8):
        document["adapter"] = {
            "type": choices.pick(("lora", "dora", "ia3", "prefix", "nonsense")),
            "rank": choices.pick((1, 65_536)),
            "targetModules": [choices.pick(("all-linear", "q_proj", "(a+)+$", "", ".*"))],
        }
    if framework == "pytorch" and choices.chance(8):
        scheme = choices.pick(("nf4", "int8", "gptq", "awq"))
        document["quantization"] = {"scheme": scheme, "bits": choices.pick((2, 3, 4, 8))}
    if choices.chance(8):
        document["parallelism"] = {
            "strategy": choices.pick(("ddp", "fsdp", "zero3", "dp", "mirrored")),
            "dataParallel": choices.pick(HUGE),
            choices.pick(
                ("tensorParallel", "pipelineParallel", "microBatches", "expertParallel")
            ): (choices.pick(HUGE)),
        }
    return document


def _training(choices: Choices) -> dict[str, Any]:
    training: dict[str, Any] = {
        "precision": choices.pick(("fp32", "fp32", "fp32", "amp-bf16", "fp16")),
        "optimizer": {"name": choices.pick(("sgd", "sgd", "adam", "sgd", "sgd", "nonsense"))},
    }
    if choices.chance(3):
        training["gradientAccumulationSteps"] = choices.pick(HUGE)
    if choices.chance(8):
        training["gradientCheckpointing"] = {"mode": choices.pick(("full", "none"))}
    if choices.chance(8):
        training["compile"] = choices.chance(2)
    return training
