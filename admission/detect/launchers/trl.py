"""TRL's command line: `trl sft …` starts one process a GPU with accelerate.

Source: huggingface/trl@f2cd577 `trl/cli/commands/training.py`: flags that the script does not have
are accelerate's. `--accelerate_config`, and that accelerate's default is not seen, are left to the
script's reader.
"""

from __future__ import annotations

from dataclasses import replace

from admission.detect.flags import parse_flags
from admission.detect.launchers.accelerate import launch_of
from admission.detect.launchers.accelerate_flags import OPTIONS
from admission.detect.launchers.step import Line, Step
from admission.detect.words import Word

_COMMANDS = frozenset({"sft", "dpo", "kto", "grpo", "rloo", "reward"})
_IDLE = frozenset({"vllm-serve", "chat", "env", "skills"})
"""They serve, or show something."""
_OWN = (
    "num_processes",
    "num_machines",
    "config_file",
    "mixed_precision",
    "multi_gpu",
    "use_deepspeed",
    "zero_stage",
    "use_fsdp",
)
"""Flags of accelerate that no script of TRL has."""


def unwrap(line: Line) -> Step | None:
    """Return TRL's script of that name and its arguments."""
    if len(line.words) >= 2 and line.words[1].text in _IDLE:
        return Step(rest=(Word(text="true"),))
    if len(line.words) < 2 or line.words[1].text not in _COMMANDS:
        return None
    rest = line.words[2:]
    flags = parse_flags(rest, OPTIONS, where=line.where, path=line.path)
    # `--config` is TRL's own file: the beginning of a name is none of accelerate's here.
    given = (flag for flag in flags.given if flag.spelling.lstrip("-").replace("-", "_") in _OWN)
    own = replace(flags, given=tuple(given), positional=())
    launch = launch_of(line, own, launcher="trl")
    launch = replace(launch, unseen="")
    return Step(rest=rest, program=line.words[1], is_module=True, launch=launch)
