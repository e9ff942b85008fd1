"""Versions of frameworks and libraries, from images and pinned packages.

    image, pins -> frameworkVersion, runtime.libraries in the draft

Only tags that carry the version by rule: `pytorch/pytorch:2.4.1-cuda12.1-cudnn9-runtime`.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.detect.draft import Draft

LIBRARIES = ("transformers", "trl", "peft", "bitsandbytes", "accelerate", "timm", "lightning")
_IMAGE = "pytorch/pytorch"
_PREFIXES = ("docker.io/", "index.docker.io/", "registry.hub.docker.com/", "mirror.gcr.io/")
_MAX_LENGTH = 64
MAX_DIGITS = 6


def put_versions(draft: Draft, *, image: str, pins: Mapping[str, str], where: str) -> None:
    """Set the framework's version and those of libraries that are told."""
    version = pins.get("torch") or image_version(image)
    source = f"{where} pip install" if "torch" in pins else f"{where}.image"
    if version is not None and is_version(version):
        draft.put("frameworkVersion", version, source)
    for name in LIBRARIES:
        pinned = pins.get(name)
        if pinned is not None and is_version(pinned):
            draft.put(f"runtime.libraries.{name}", pinned, f"{where} pip install")


def image_version(image: str) -> str | None:
    """Return `2.4.1+cu121` for `pytorch/pytorch:2.4.1-cuda12.1-cudnn9-runtime`, or None."""
    name, _, tag = image.partition("@")[0].rpartition(":")
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    if name != _IMAGE:
        return None
    parts = tag.split("-")
    cuda = next((part.removeprefix("cuda") for part in parts if part.startswith("cuda")), "")
    version = parts[0]
    if not is_version(version) or version.count(".") != 2:
        return None
    digits = cuda.replace(".", "")
    return f"{version}+cu{digits}" if digits.isdigit() else version


def is_version(text: str) -> bool:
    """Return whether *text* is a version: digits and dots, with a local part at most."""
    plain = text.partition("+")[0]
    allowed = text.replace(".", "").replace("+", "").replace("-", "")
    return (
        0 < len(text) <= _MAX_LENGTH
        and plain[:1].isdigit()
        and allowed.isalnum()
        and allowed.isascii()
    )


def version_of(text: str) -> tuple[int, ...] | None:
    """Return the release numbers of *text* (`0.9.1.post1` -> 0, 9, 1), or None if it has none."""
    numbers = []
    for part in text.partition("+")[0].split("."):
        if not part.isascii() or not part.isdigit() or len(part) > MAX_DIGITS:
            break
        numbers.append(int(part))
    return tuple(numbers) or None


def is_before(version: object, limit: tuple[int, int]) -> bool:
    """Return whether *version* is known and older than *limit*."""
    if not isinstance(version, str):
        return False
    parts = version.split(".")
    numbers = [int(part) for part in parts[:2] if part.isdigit() and len(part) < 6]
    return len(numbers) == 2 and (numbers[0], numbers[1]) < limit
