"""Repositories that a command line clones, and whose they are.

    `git clone URL FOLDER` -> folder -> URL; script -> URL; URL -> doubt

A clone in a folder of another name is still the repository; one of somebody else's may be changed.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

from admission.detect.words import words

_HERE = "."
_OWNERS = frozenset(
    words(
        "allegro apache aws-neuron aws-samples axolotl-ai-cloud coreweave databricks-mosaic dmlc "
        "eleutherai facebookresearch foundation-model-stack google googlecloudplatform hiyouga "
        "horovod huggingface hpcaitech intel kaito-project karpathy keras-team kubeflow "
        "lightning-ai meta-llama meta-pytorch microsoft mosaicml mxnet nvidia nvidia-nemo "
        "open-mmlab openaccess-ai-collective pytorch pytorch-labs rwightman stas00 tensorflow "
        "ultralytics unslothai wongkinyiu ai-hypercomputer aws deepspeedai apple stanford-crfm"
    )
)
"""Whose repositories the recipes were read in, and their former owners, in small letters."""


def note_clone(texts: Sequence[str], *, directory: str, cloned: MutableMapping[str, str]) -> None:
    """Remember the folder that `git clone` makes; *texts* are a call of git in *directory*."""
    if "clone" not in texts:
        return
    rest = texts[texts.index("clone") + 1 :]
    at = next((at for at, text in enumerate(rest) if "://" in text), None)
    if at is None:
        return
    url = rest[at].rstrip("/")
    name = url.rpartition("/")[2].removesuffix(".git")
    if rest[at + 1 : at + 2] and not rest[at + 1].startswith("-"):
        name = rest[at + 1].rstrip("/").rpartition("/")[2]
    if name == _HERE:
        name = directory.rstrip("/").rpartition("/")[2] or _HERE
    cloned[name] = url.removesuffix(".git")


def repository_of(script: str, *, directory: str, cloned: Mapping[str, str]) -> str:
    """Return the URL of the repository that holds *script*, run in *directory*; or nothing."""
    place = script if script.startswith("/") else f"{directory}/{script}"
    folders = place.split("/")[:-1]
    for folder in reversed(folders):
        if folder in cloned:
            return cloned[folder]
    return "" if script.startswith("/") else cloned.get(_HERE, "")


def fork_of(url: str) -> str:
    """Return what makes *url* somebody's own copy of a known program; nothing if it is none."""
    parts = url.lower().partition("://")[2].rpartition("@")[2].split("/")
    if len(parts) < 3 or parts[1] in _OWNERS:
        return ""
    return f"is cloned from {url:.120}, a copy whose changes are not seen"
