"""accelerate's configuration file, as flags under those of the command line.

    file -> Flags named as `accelerate launch` names them

Source: huggingface/accelerate@16cb6eb `src/accelerate/commands/launch.py`
`_validate_launch_command`, `commands/config/config_args.py` (where the default file is).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from admission.detect.configs import document_flags, read_config
from admission.detect.files import File
from admission.detect.flags import Flag, Flags
from admission.detect.launchers.step import Line

DEFAULT_NAME = "accelerate/default_config.yaml"
_ROOT = "/root"
"""The home of the user that images run as where nobody says otherwise."""
_HOMES = ("HF_HOME", "XDG_CACHE_HOME", "HOME")
_BELOW: Mapping[str, str] = {
    "HF_HOME": DEFAULT_NAME,
    "XDG_CACHE_HOME": f"huggingface/{DEFAULT_NAME}",
    "HOME": f".cache/huggingface/{DEFAULT_NAME}",
}
_PREFIXED = {"fsdp_config": "fsdp_", "fp8_config": "fp8_", "dynamo_config": "dynamo_"}
"""Parts whose keys are flags once this stands before them."""
_PARTS = ("deepspeed_config", "megatron_lm_config", "parallelism_config", *_PREFIXED)
_LOST = re.compile(
    r"([a-z_][a-z0-9_]{0,63}): {0,8}([\w.'-]{1,99}?)(?=n {0,8}[a-z_][a-z0-9_]{0,63}:|[\"\s]|$)"
)
"""`key: value` where a line's end became the letter `n`: `\\n` outside quotes of an `echo`."""
_LOST_ENDS = (
    "the line ends of accelerate's configuration are lost where it is written (\\n outside "
    "quotes): it is read as it was meant, and the job itself may fail to read it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a configuration file says, or why it says nothing."""

    flags: Flags = field(default_factory=Flags)
    is_there: bool = False
    problem: str = ""
    doubt: str = ""


def read_settings(file: File, *, path: str) -> Settings:
    """Return what *file* says; *path* is the field that names it."""
    config = read_config(file)
    document, doubt = config.document, ""
    if config.problem:
        document = dict(_without_line_ends(file.text or ""))
        if not document:
            return Settings(problem=config.problem)
        doubt = _LOST_ENDS
    if "distributed_type" not in document:
        return Settings(problem="has no distributed_type")
    given = document_flags(_flat(document), told_by=file.source, path=path)
    return Settings(flags=given, is_there=True, doubt=doubt)


def default_file(line: Line) -> File | None:
    """Return accelerate's default configuration, if the pod or the script brings one."""
    for name in _HOMES:
        word = line.value(name)
        home = word.text if word is not None else _ROOT if name == "HOME" else ""
        if not home:
            continue
        file = line.read_file(f"{home}/{_BELOW[name]}")
        if file.text is not None or file.is_awaited:
            return file
        break
    return line.files.ending_with(DEFAULT_NAME)


def _flat(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with the keys of its parts beside its own."""
    found: dict[str, Any] = {}
    for key, value in document.items():
        if key in _PARTS and isinstance(value, Mapping):
            prefix = _PREFIXED.get(key, "")
            for name, item in value.items():
                has_prefix = not prefix or str(name).startswith(prefix)
                found[str(name) if has_prefix else f"{prefix}{name}"] = item
        elif key not in _PARTS:
            found[str(key)] = value
    return found


def _without_line_ends(text: str) -> Iterator[tuple[str, str]]:
    if text.count("\n") > 1 or "distributed_type:" not in text or len(text) > 1 << 14:
        return
    for key, value in _LOST.findall(text):
        name = key
        for known in ("distributed_type", "mixed_precision", "num_", "zero", "offload", "fsdp_"):
            at = key.find(known)
            name = key[at:] if 0 < at <= 1 else name
        yield name, value.strip("'\"")


def merged(flags: Flags, settings: Settings) -> Flags:
    """Return the command line's *flags* over the file's, `null` taken for nothing."""
    below = tuple(flag for flag in settings.flags.given if not _is_null(flag))
    return flags.over(replace(settings.flags, given=below))


def _is_null(flag: Flag) -> bool:
    return flag.value is not None and flag.value.text == "null"
