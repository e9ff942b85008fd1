"""TRL's command line: `trl sft …` starts one process a GPU with accelerate.

Source: trl `cli/commands`. accelerate's default configuration is not seen.
"""

from __future__ import annotations

from admission.detect.invocation import Launch, Spawn
from admission.detect.launchers.step import Line, Step

_COMMANDS = frozenset({"sft", "dpo", "kto", "grpo", "rloo", "reward"})


def unwrap(line: Line) -> Step | None:
    """Return TRL's script of that name and its arguments."""
    if len(line.words) < 2 or line.words[1].text not in _COMMANDS:
        return None
    launch = Launch(launcher="trl", is_distributed=True, spawn=Spawn.ALL)
    return Step(rest=line.words[2:], program=line.words[1], is_module=True, launch=launch)
