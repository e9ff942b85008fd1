"""Programs that use a GPU and train nothing, and launchers that are not read yet.

command name or image -> what it is
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from admission.detect.words import words

SMOKE = frozenset(
    words(
        "nvidia-smi vectorAdd vectoradd deviceQuery bandwidthTest p2pBandwidthLatencyTest "
        "gpu-burn gpu_burn dcgmi dcgmproftest12 sleep pause tail true :"
    )
)
"""Smoke tests and waiting."""
SERVING = frozenset(
    words(
        "vllm text-generation-launcher tritonserver trtllm-serve ollama lmdeploy sglang "
        "tensorflow_model_server torchserve bentoml"
    )
)
INTERACTIVE = frozenset(
    words("jupyter jupyter-lab jupyter-notebook jupyterhub-singleuser code-server")
)
_SUFFIXES = ("_perf",)
"""nccl-tests: all_reduce_perf, all_gather_perf, …"""

MODULES = (
    "vllm.",
    "sglang.",
    "lmdeploy.",
    "jupyter",
    "notebook",
    "text_generation_server",
    "http.server",
    "tensorboard",
)
"""Beginnings of Python modules that serve or are interactive."""

TOOLS = frozenset(words("pip venv ensurepip compileall json.tool site zipfile"))
"""Python modules that set things up and say nothing about training."""

IMAGES = (
    "cuda-sample",
    "cuda-vector-add",
    "vectoradd",
    "nccl-tests",
    "gpu-burn",
    "vllm-openai",
    "text-generation-inference",
    "tritonserver",
)
"""Last part of images that do nothing else when no command is given."""

HARMLESS = frozenset(
    words(
        "[ [[ test echo printf mkdir ln cp mv rm ls cat cd set export git wget curl "
        "pip pip3 apt apt-get apk conda mamba chmod chown touch tar unzip gunzip env date "
        "hostname whoami id pwd ulimit umask trap wait exit return shift read sed awk grep "
        "find head sort tee nproc free df mount huggingface-cli hf wandb aws gsutil gcloud "
        "azcopy rsync ssh-keyscan which type unset alias until time ldconfig modprobe "
        "stat dirname basename realpath tr cut wc seq break continue local readonly "
        "shopt service ray-stop kill pkill cmake ninja uv f (("
    )
)
"""Commands that prepare or clean up."""

SETTINGS = re.compile(r"activate|conda|mamba|profile|rc$|env|vars|setup", re.IGNORECASE)
"""In the name of a file that is sourced: it sets things up."""
BUILDS = frozenset(words("all install build clean deps setup requirements prepare"))
"""Targets of make that train nothing."""

UNREAD: Mapping[str, str] = {
    "trl": "trl",
    "axolotl": "axolotl",
    "llamafactory-cli": "LLaMA-Factory",
    "tune": "torchtune",
    "composer": "Composer",
    "lightning": "Lightning",
    "fabric": "Lightning Fabric",
    "nemo": "NeMo",
    "autotrain": "AutoTrain",
    "yolo": "ultralytics",
    "mpirun": "mpirun",
    "horovodrun": "horovodrun",
    "mpiexec": "mpiexec",
    "bpslaunch": "BytePS",
    "hyperpodrun": "hyperpodrun",
    "ray": "Ray",
    "colossalai": "Colossal-AI",
    "ludwig": "Ludwig",
    "xtuner": "XTuner",
    "swift": "ms-swift",
}
"""Launchers that are known and not read yet -> what people call them."""

UNREAD_MODULES: Mapping[str, str] = {
    "axolotl.cli": "axolotl",
    "axlearn": "axlearn",
    "trl.": "trl",
    "torchtitan": "torchtitan",
    "torchtune": "torchtune",
    "llamafactory": "LLaMA-Factory",
    "nemo": "NeMo",
    "megatron": "Megatron-LM",
    "verl": "verl",
    "lightning": "Lightning",
    "composer": "Composer",
    "llama_recipes": "llama-recipes",
    "fairseq": "fairseq",
    "paddle.distributed.launch": "PaddlePaddle",
    "horovod": "horovod",
    "tuning.sft_trainer": "fms-hf-tuning",
}


def is_no_training(name: str) -> bool:
    """Return whether the command *name* is a smoke test, a server or a notebook."""
    return name in SMOKE | SERVING | INTERACTIVE or name.endswith(_SUFFIXES)


def is_preparation(texts: Sequence[str]) -> bool:
    """Return whether the command line *texts* only prepares or cleans up."""
    name, *rest = texts
    if name in ("source", "."):
        return bool(rest) and SETTINGS.search(rest[0].rpartition("/")[2]) is not None
    if name == "make":
        return all(text in BUILDS or text[:1] == "-" or "=" in text for text in rest)
    return name in HARMLESS


def is_serving_module(name: str) -> bool:
    """Return whether the Python module *name* serves or is interactive."""
    return name.startswith(MODULES)


def is_smoke_image(image: str) -> bool:
    """Return whether *image* is a published one that only tests, serves or is a notebook."""
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return name in IMAGES or name.endswith("-notebook") or name.startswith("jupyter")
