"""Launchers, one a file, taken off a command line until a script or module is left.

words -> Step
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.detect.launchers import accelerate, deepspeed, python, torchrun, trl, wrappers
from admission.detect.launchers.step import Launcher, Line, Step

__all__ = ["LAUNCHERS", "MODULES", "Line", "Step", "unwrap"]

LAUNCHERS: Mapping[str, Launcher] = {
    "torchrun": torchrun.unwrap,
    "accelerate": accelerate.unwrap,
    "accelerate-launch": accelerate.unwrap_module,
    "deepspeed": deepspeed.unwrap,
    "trl": trl.unwrap,
    **dict.fromkeys((*wrappers.WRAPPERS, *wrappers.SUBCOMMANDS), wrappers.unwrap),
}
"""Command name -> how it is taken off."""

MODULES: Mapping[str, Launcher] = {
    "torch.distributed.run": torchrun.unwrap,
    "torch.distributed.launch": torchrun.unwrap,
    "accelerate.commands.launch": accelerate.unwrap_module,
    "deepspeed.launcher.runner": deepspeed.unwrap,
}
"""Module of `python -m` -> how it is taken off."""


def unwrap(line: Line) -> Step | None:
    """Return *line* with its outermost layer taken off, or None if that is no launcher."""
    if python.is_python(line.name):
        step = python.unwrap(line)
        module = step.program.text if step and step.program and step.is_module else ""
        if step is not None and step.program is not None and module in MODULES:
            inner = Line(words=(step.program, *step.rest), where=line.where, path=line.path)
            return MODULES[module](inner)
        return step
    if line.name.endswith(".py"):
        return Step(rest=line.words[1:], program=line.words[0])
    launcher = LAUNCHERS.get(line.name)
    return launcher(line) if launcher else None
