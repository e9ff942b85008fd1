"""`accelerate launch`: processes, mixed precision, DeepSpeed and FSDP by flags or a file.

Source: huggingface/accelerate@16cb6eb `src/accelerate/commands/launch.py`, `utils/dataclasses.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.draft import SHARDED_HINT, Gap
from admission.detect.flags import Flag, Flags
from admission.detect.invocation import Launch, Spawn
from admission.detect.launchers.accelerate_config import (
    Settings,
    default_file,
    merged,
    read_settings,
)
from admission.detect.launchers.accelerate_flags import OPTIONS
from admission.detect.launchers.accelerate_sharing import sharing_of
from admission.detect.launchers.step import Line, Step, split_options
from admission.detect.words import Word
from admission.values import Finding

_SHARING = ("multi_gpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "tpu", "cpu")
_DECIDING = (*_SHARING[:4], "config_file")
"""With one of these, the default configuration does not choose how cards share the work."""
_DEFAULT_FILE = "accelerate's default configuration inside the image, if there is one, is not seen"
_TYPES: Mapping[str, str] = {
    "MULTI_GPU": "multi_gpu",
    "DEEPSPEED": "use_deepspeed",
    "FSDP": "use_fsdp",
    "MEGATRON_LM": "use_megatron_lm",
    "XLA": "tpu",
    "TPU": "tpu",
    "MULTI_CPU": "cpu",
}
"""`distributed_type` -> the flag that says the same."""


def unwrap(line: Line) -> Step | None:
    """Return the script `accelerate launch` starts, and what its flags decide."""
    if len(line.words) < 2 or line.words[1].text != "launch":
        return None
    return unwrap_module(line.inner(*line.words[1:]))


def unwrap_module(line: Line) -> Step | None:
    """Return the script of `python -m accelerate.commands.launch`."""
    flags, rest = split_options(line, OPTIONS)
    if not rest:
        return None
    launch = launch_of(line, flags)
    if flags.has("no_python"):
        return Step(rest=rest, launch=launch)
    return Step(rest=rest[1:], program=rest[0], is_module=flags.has("module"), launch=launch)


def launch_of(line: Line, flags: Flags, *, launcher: str = "accelerate launch") -> Launch:
    """Return what accelerate decides by its *flags* and the configuration file it reads."""
    gaps: list[Gap] = []
    settings = _settings(line, flags, gaps)
    is_decided = flags.has(*_DECIDING)
    if settings.is_there:
        flags = _with_type(merged(flags, settings), flags, settings)
    sharing = sharing_of(line, flags)
    kind = settings.flags.get("distributed_type")
    is_single = not flags.has(*_SHARING) and _text(kind).upper() == "NO"
    return Launch(
        launcher=launcher,
        is_distributed=not is_single,
        spawn=Spawn.ONE if is_single else Spawn.ALL,
        total=None if is_single else flags.get("num_processes"),
        nodes=flags.get("num_machines"),
        precision=flags.get("mixed_precision"),
        parallelism=sharing.values,
        gaps=tuple(_gap(*item) for item in sharing.unread),
        gaps_if_shared=tuple(gaps),
        is_configured=settings.is_there,
        doubts=(settings.doubt,) if settings.doubt else (),
        shards_in_node=sharing.is_hybrid,
        is_on_cpu=flags.is_on("cpu", "use_cpu"),
        unseen="" if is_decided or settings.is_there or gaps else _DEFAULT_FILE,
    )


def _settings(line: Line, flags: Flags, gaps: list[Gap]) -> Settings:
    """Return what the file that is named says, or the default one if it is seen."""
    named = flags.get("config_file")
    if named is None:
        file = default_file(line)
        if file is None:
            return Settings()
        named = line.flag("default_config.yaml", Word(text=file.path))
    elif named.value is None or not named.value.is_known:
        gaps.append(_gap(named, "is not resolved"))
        return Settings()
    else:
        file = line.read_file(named.value.text)
    settings = read_settings(file, path=named.field)
    if settings.problem:
        gaps.append(_gap(named, settings.problem, code=ReasonCode.DOCUMENT))
    return settings


def _with_type(found: Flags, given: Flags, settings: Settings) -> Flags:
    """Return *found* with the flag that the file's `distributed_type` stands for."""
    kind = settings.flags.get("distributed_type")
    name = _TYPES.get(_text(kind).upper()) if kind is not None else None
    if kind is None or name is None or given.has(*_SHARING):
        return found
    return replace(found, given=(*found.given, replace(kind, name=name, values=())))


def _text(flag: Flag | None) -> str:
    return flag.value.text if flag is not None and flag.value is not None else ""


def _gap(flag: Flag, reason: str, *, code: str = ReasonCode.UNSUPPORTED) -> Gap:
    word = flag.value
    if word is not None and not word.is_known:
        code = word.code
    return Gap(
        finding=Finding(
            code=code,
            path=flag.field,
            reason=f"accelerate's {flag.spelling} {_text(flag):.120} {reason}".replace("  ", " "),
            hint=SHARDED_HINT,
        ),
        closed_by=("parallelism.strategy",),
    )
