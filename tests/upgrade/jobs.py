"""JobSpecs that use the vocabulary widely: written into the samples of a release."""

from __future__ import annotations

from typing import Any

HEAD = {"apiVersion": "vramgate.dev/v1", "kind": "JobSpec"}
JOBS: tuple[dict[str, Any], ...] = (
    {
        **HEAD,
        "framework": "pytorch",
        "frameworkVersion": "2.13.0+cu130",
        "phase": "train",
        "model": {"source": "torchvision", "name": "resnet50", "task": "image-classification"},
        "input": {"batchSize": 32, "imageSize": [3, 224, 224], "prefetchBatches": 1},
        "training": {
            "precision": "amp-fp16",
            "optimizer": {"name": "sgd", "momentum": 0.9, "weightDecay": 0.0001},
            "gradientAccumulationSteps": 2,
            "zeroGrad": {"position": "after-step", "setToNone": False},
            "keepOutputs": True,
            "emptyCache": {"everySteps": 10},
            "clipGradNorm": True,
            "ema": True,
            "labelSmoothing": 0.1,
            "evaluation": {"batchSize": 64},
        },
        "runtime": {
            "env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
            "driver": "590.48",
            "memoryFormat": "channels_last",
            "cudnnBenchmark": True,
            "extraBytes": 1048576,
        },
    },
    {
        **HEAD,
        "framework": "pytorch",
        "objective": "sft",
        "model": {
            "source": "huggingface",
            "name": "meta-llama/Llama-3.1-8B",
            "task": "causal-lm",
            "attention": "sdpa",
            "revision": "main",
        },
        "input": {"batchSize": 4, "sequenceLength": 2048, "padding": "longest"},
        "training": {
            "precision": "bf16",
            "optimizer": {"name": "adamw", "bits": 8, "paged": True},
            "gradientCheckpointing": {"mode": "full", "every": 1, "reentrant": False},
            "loss": "chunked",
        },
        "adapter": {
            "type": "lora",
            "rank": 16,
            "alpha": 32,
            "dropout": 0.05,
            "targetModules": ["q_proj", "v_proj"],
        },
        "quantization": {
            "bits": 4,
            "scheme": "nf4",
            "doubleQuant": True,
            "computeDtype": "bf16",
            "prepare": "kbit",
        },
        "runtime": {"libraries": {"transformers": "5.24.0", "trl": "1.2.0"}},
    },
    {
        **HEAD,
        "framework": "pytorch",
        "model": {"source": "huggingface", "name": "gpt2", "task": "causal-lm", "config": {}},
        "input": {"batchSize": 8, "sequenceLength": 1024},
        "training": {"precision": "amp-bf16", "optimizer": {"name": "adamw", "fused": True}},
        "parallelism": {
            "strategy": "fsdp",
            "implementation": "fsdp2",
            "worldSize": 8,
            "dataParallel": 8,
            "wrap": "layer",
            "mixedPrecision": {"param": "bf16", "reduce": "fp32"},
            "offload": "none",
            "interconnect": "nvlink",
        },
    },
    {
        **HEAD,
        "framework": "tensorflow",
        "model": {"source": "keras", "name": "ResNet50"},
        "input": {"batchSize": 16, "imageSize": [3, 224, 224]},
        "training": {"optimizer": {"name": "adam"}, "compile": False},
        "runtime": {"allowGrowth": True},
    },
    {
        **HEAD,
        "framework": "mxnet",
        "phase": "infer",
        "model": {
            "source": "layers",
            "name": "mlp",
            "config": {
                "inputShape": [784],
                "layers": [
                    {"type": "linear", "in": 784, "out": 128},
                    {"type": "activation", "name": "relu"},
                    {"type": "dropout", "rate": 0.5},
                    {"type": "linear", "in": 128, "out": 10},
                ],
            },
        },
        "input": {"batchSize": 64, "shape": [784]},
    },
)
