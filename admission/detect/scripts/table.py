"""Where the families of scripts are, and what tells that a call may be one of theirs.

    -> the modules of families, in one table

Names only: a family is imported once something it may read is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from admission.detect.invocation import Invocation
from admission.detect.recipes import load_recipe


def _never(_invocation: Invocation) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One module of families."""

    module: str
    """Beside this one. It has `FAMILY`, or `FAMILIES`."""
    recipes: tuple[str, ...] = ()
    """By whose scripts, modules and own flags its families are recognised."""
    scripts: tuple[str, ...] = ()
    """File names that its families look at, beyond those of recipes."""
    may_claim: Callable[[Invocation], bool] = _never
    """What else may tell. Never False for a call that one of its families claims otherwise."""


def _of(*names: str) -> tuple[Entry, ...]:
    """Return entries of modules with one family each, that is recognised by its recipe alone."""
    return tuple(Entry(module=name, recipes=(name,)) for name in names)


def _may_be_trainer(invocation: Invocation) -> bool:
    """Return whether the name of the script or of a flag may be one of Hugging Face's."""
    return invocation.name.startswith("run_") or any(
        name.startswith("per_") for name in invocation.spellings
    )


def _may_be_trl(invocation: Invocation) -> bool:
    """Return whether it is called like one of TRL's trainers."""
    name = invocation.name
    if invocation.is_module:
        return name.startswith("trl.")
    return name.endswith(".py") and name.removesuffix(".py") in load_recipe("trl").modules


def _may_be_diffusion(invocation: Invocation) -> bool:
    return invocation.name.startswith(("train_", "textual_inversion"))


def _may_be_foundry(invocation: Invocation) -> bool:
    return invocation.launch.launcher == "composer"


def _may_be_lightning(invocation: Invocation) -> bool:
    return bool(invocation.arguments) and invocation.arguments[0].text == "fit"


def _may_be_keras(invocation: Invocation) -> bool:
    """Return whether something beside the script may say TensorFlow."""
    told = (invocation.image, *invocation.versions)
    return "TF_CONFIG" in invocation.variables or any(
        word in text for text in told for word in ("tensorflow", "keras", "tf-nightly")
    )


FINETUNING = (
    Entry(module="hf_trainer", may_claim=_may_be_trainer),
    Entry(
        module="trl",
        recipes=("trl",),
        scripts=("reward_modeling.py", "sft_vlm.py", "dpo_vlm.py"),
        may_claim=_may_be_trl,
    ),
    *_of("axolotl", "llama_factory", "llama_recipes"),
    Entry(module="fms_tuning", recipes=("fms_hf_tuning",)),
    *_of("unsloth", "kaito", "kubeflow_train"),
    Entry(module="finetuners", recipes=("text_finetuner", "image_finetuner")),
    Entry(module="diffusion", recipes=("diffusers",), may_claim=_may_be_diffusion),
    *_of("distillation"),
)
"""Programs that fine-tune."""

PICTURES = (
    Entry(module="torchvision", scripts=("train.py",)),
    Entry(module="timm", scripts=("train.py",)),
    Entry(module="imagenet", scripts=("main.py", "imagenet.py")),
    *_of("tf_cnn_benchmarks", "nvidia_resnet"),
    Entry(module="nvidia_convnets", recipes=("nvidia_convnets", "nvidia_tf_convnets")),
    Entry(module="deep_learning_examples", recipes=("nvidia_bert", "nvidia_ssd")),
    Entry(module="mxnet_symbols", recipes=("mxnet_images", "byteps_imagenet", "nvidia_mxnet")),
    Entry(module="mxnet_gluon", recipes=("gluoncv_images", "mxnet_horovod")),
    Entry(
        module="horovod_samples",
        recipes=(
            "horovod_pytorch",
            "horovod_tensorflow",
            "resnet50_sample",
            "horovod_pytorch_mnist",
            "horovod_tensorflow_mnist",
        ),
    ),
    Entry(
        module="torchvision_references",
        recipes=(
            "torchvision_detection",
            "torchvision_segmentation",
            "torchvision_video",
            "torchvision_optical_flow",
            "torchvision_similarity",
        ),
    ),
    Entry(module="vision_transformers", recipes=("deit", "mae", "convnext")),
    *_of("swin"),
    Entry(module="yolov5", recipes=("yolov5", "yolov5_classify")),
    *_of("ultralytics"),
    Entry(module="imagenet_loaders", recipes=("dali_imagenet", "ffcv_imagenet")),
    Entry(module="detection_toolboxes", recipes=("openmmlab", "detectron2")),
    *_of("tf_vision"),
    Entry(module="keras_scripts", may_claim=_may_be_keras),
)
"""Programs that train on pictures, and those of TensorFlow and MXNet."""

PRETRAINING = (
    *_of("aws_fsdp", "axlearn", "gpt_neox"),
    Entry(module="lightning_cli", may_claim=_may_be_lightning),
    *_of("litgpt"),
    Entry(module="llm_foundry", recipes=("llm_foundry",), may_claim=_may_be_foundry),
    *_of("maxtext", "megatron", "megatron_bridge", "nanogpt", "nemo", "nemo_megatron"),
    *_of("torchtitan", "torchtune"),
)
"""Programs that pre-train and tune language models, and those that take a configuration file."""

ENTRIES = (*FINETUNING, *PICTURES, *PRETRAINING)
