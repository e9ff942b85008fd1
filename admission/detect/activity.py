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
        "gpu-burn gpu_burn dcgmi dcgm-exporter nv-hostengine nvbandwidth nvidia-ctk nvtop "
        "gpu-fryer simpleP2P simpleMultiGPU matrixMul nbody cudaOpenMP p2pbandwidth "
        "ib_write_bw ib_read_bw ib_send_bw perftest fio iperf3 sleep pause tail true : sshd"
    )
)
"""Smoke tests and waiting."""
SERVING = frozenset(
    words(
        "vllm text-generation-launcher tritonserver trtllm-serve ollama lmdeploy sglang "
        "tensorflow_model_server torchserve bentoml multi-node-serving.sh "
        "text-embeddings-router trtllm-llmapi-launch trtllm-build trtllm-bench serve openllm "
        "aphrodite tabby llama-server llama-cli infinity_emb xinference-local xinference-worker "
        "xinference-supervisor mlserver uvicorn gunicorn hypercorn streamlit gradio litellm "
        "dynamo triton local-ai tgi-server mii koboldcpp wyoming-faster-whisper speaches"
    )
)
"""The last is vLLM's own, `examples/online_serving` (v0.8.5)."""
INTERACTIVE = frozenset(
    words(
        "jupyter jupyter-lab jupyter-notebook jupyterhub-singleuser code-server start-notebook.sh "
        "start-notebook.py start-singleuser.sh start-singleuser.py rstudio-server vncserver "
        "tensorboard code openvscode-server"
    )
)
EVALUATING = frozenset(
    words(
        "lm_eval lm-eval lm-evaluation-harness lighteval helm-run opencompass evalplus.evaluate "
        "bigcode-eval inspect swebench evalscope mteb guidellm genai-perf perf_analyzer "
        "trtexec mlperf"
    )
)
"""Harnesses that evaluate or measure models that somebody else trained."""
_SUFFIXES = ("_perf", "_perf_mpi")
"""nccl-tests: all_reduce_perf, all_gather_perf, …"""
_BEGINNINGS = ("dcgmproftest",)
"""dcgmproftest11, dcgmproftest12, …: one a CUDA release."""

MODULES = (
    "vllm.",
    "sglang.",
    "lmdeploy.",
    "jupyter",
    "notebook",
    "text_generation_server",
    "http.server",
    "tensorboard",
    "huggingfaceserver",
    "kserve",
    "tritonserver",
    "tensorrt_llm",
    "fastchat.serve",
    "llama_cpp.server",
    "mlc_llm",
    "ray.serve",
    "uvicorn",
    "gunicorn",
    "streamlit",
    "bentoml",
    "aphrodite",
    "xinference",
    "infinity_emb",
    "ipykernel",
    "lm_eval",
    "lighteval",
    "opencompass",
    "evalplus",
    "bigcode_eval",
    "torch.utils.collect_env",
    "torch.distributed.elastic.rendezvous",
)
"""Beginnings of Python modules that serve, evaluate or are interactive."""

TOOLS = frozenset(
    words("pip venv ensurepip compileall py_compile json.tool site zipfile sysconfig")
)
"""Python modules that set things up and say nothing about training."""

IMAGES = (
    "cuda-sample",
    "cuda-vector-add",
    "vectoradd",
    "nccl-tests",
    "gpu-burn",
    "vllm-openai",
    "text-generation-inference",
    "text-embeddings-inference",
    "tritonserver",
    "sglang",
    "lmdeploy",
    "ollama",
    "huggingfaceserver",
    "llama.cpp",
    "dcgm-exporter",
    "dcgm",
    "k8s-device-plugin",
    "nvbandwidth",
    "torchserve-kfs",
    "code-server",
    "sleep",
    "pause",
    "agnhost",
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
        "shopt service ray-stop kill pkill cmake ninja uv f (( "
        "envsubst jq yq base64 md5sum sha256sum xargs comm paste column rev tac nl split truncate "
        "mktemp install mountpoint umount chgrp getent groupadd useradd usermod nslookup dig ping "
        "nc host getconf lscpu lspci lsmod ip ifconfig ibstat ibv_devinfo ulimit sysctl ps top "
        "pgrep printenv let eval command hash logger stty clear numfmt bc expr rclone s5cmd mc "
        "gcsfuse git-lfs kubectl scp sshpass apt-key add-apt-repository dpkg yum dnf "
        "microdnf pip-compile pre-commit npm cpupower nvidia-persistenced "
        "nvidia-cuda-mps-control pushd popd declare typeset readonly dirs rmdir gzip zip bzip2 xz "
        "zstd pigz unxz 7z sync stress trap ssh-keygen ssh-agent ssh-add openssl gpg modelscope"
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
    "colossalai": "Colossal-AI",
    "ludwig": "Ludwig",
    "xtuner": "XTuner",
    "swift": "ms-swift",
}
"""Launchers that are known and not read yet -> what people call them."""

UNREAD_MODULES: Mapping[str, str] = {
    "megatron": "Megatron-LM",
    "verl": "verl",
    "lightning": "Lightning",
    "composer": "Composer",
    "fairseq": "fairseq",
    "paddle.distributed.launch": "PaddlePaddle",
    "horovod": "horovod",
}


_QUIET = SMOKE | SERVING | INTERACTIVE | EVALUATING


def is_no_training(name: str) -> bool:
    """Return whether the command *name* is a smoke test, a server or a notebook."""
    is_measured = name.endswith(_SUFFIXES) or name.startswith(_BEGINNINGS)
    return is_measured or name in _QUIET


def is_preparation(texts: Sequence[str]) -> bool:
    """Return whether the command line *texts* only prepares or cleans up."""
    name, *rest = texts
    if name in ("source", "."):
        return bool(rest) and SETTINGS.search(rest[0].rpartition("/")[2]) is not None
    if name == "wandb" and rest[:1] in (["agent"], ["launch"], ["launch-agent"]):
        return False
    if name == "accelerate":
        return rest[:1] in (["config"], ["env"], ["estimate-memory"], ["merge-weights"])
    if name == "make":
        return all(text in BUILDS or text[:1] == "-" or "=" in text for text in rest)
    return name in HARMLESS


def is_serving_module(name: str) -> bool:
    """Return whether the Python module *name* serves or is interactive."""
    return name.startswith(MODULES)


def is_smoke_image(image: str) -> bool:
    """Return whether *image* is a published one that only tests, serves or is a notebook."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    if tag.endswith("-jupyter"):
        return True
    return name in IMAGES or name.endswith("-notebook") or name.startswith("jupyter")
