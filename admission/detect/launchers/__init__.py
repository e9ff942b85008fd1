"""Launchers, one a file, taken off a command line until a script or module is left.

words -> Step
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from admission.detect.launchers import mpi, profilers, programs, python, wrappers
from admission.detect.launchers.step import Launcher, Line, Step
from estimator.deferred import Deferred, later, load

if TYPE_CHECKING:
    from admission.detect.launchers import (
        accelerate,
        byteps,
        colossalai,
        composer,
        deepspeed,
        fabric,
        horovod,
        ray,
        torchrun,
        trl,
    )
else:
    accelerate = Deferred("admission.detect.launchers.accelerate")
    byteps = Deferred("admission.detect.launchers.byteps")
    colossalai = Deferred("admission.detect.launchers.colossalai")
    composer = Deferred("admission.detect.launchers.composer")
    deepspeed = Deferred("admission.detect.launchers.deepspeed")
    fabric = Deferred("admission.detect.launchers.fabric")
    horovod = Deferred("admission.detect.launchers.horovod")
    ray = Deferred("admission.detect.launchers.ray")
    torchrun = Deferred("admission.detect.launchers.torchrun")
    trl = Deferred("admission.detect.launchers.trl")

__all__ = ["LAUNCHERS", "MODULES", "Line", "Step", "load_launchers", "unwrap"]

LAUNCHERS: Mapping[str, Launcher] = {
    "torchrun": later(lambda: torchrun.unwrap),
    "hyperpodrun": later(lambda: torchrun.unwrap),
    "accelerate": later(lambda: accelerate.unwrap),
    "accelerate-launch": later(lambda: accelerate.unwrap_module),
    "deepspeed": later(lambda: deepspeed.unwrap),
    "trl": later(lambda: trl.unwrap),
    "horovodrun": later(lambda: horovod.unwrap),
    "bpslaunch": later(lambda: byteps.unwrap),
    "composer": later(lambda: composer.unwrap),
    "colossalai": later(lambda: colossalai.unwrap),
    "fabric": later(lambda: fabric.unwrap),
    "lightning": later(lambda: fabric.unwrap),
    "ray": later(lambda: ray.unwrap),
    "srun": mpi.unwrap_srun,
    **dict.fromkeys(mpi.NAMES, mpi.unwrap),
    **programs.PROGRAMS,
    **dict.fromkeys((*wrappers.WRAPPERS, *wrappers.SUBCOMMANDS), wrappers.unwrap),
    **dict.fromkeys(wrappers.SCRIPTED, wrappers.unwrap_scripted),
}
"""Command name -> how it is taken off."""

MODULES: Mapping[str, Launcher] = {
    "torch.distributed.run": later(lambda: torchrun.unwrap),
    "torch.distributed.launch": later(lambda: torchrun.unwrap),
    "torchelastic.distributed.launch": later(lambda: torchrun.unwrap),
    "accelerate.commands.launch": later(lambda: accelerate.unwrap_module),
    "accelerate.commands.accelerate_cli": later(lambda: accelerate.unwrap),
    "deepspeed.launcher.runner": later(lambda: deepspeed.unwrap),
    "composer": later(lambda: composer.unwrap),
    "composer.cli.launcher": later(lambda: composer.unwrap),
    "horovod.runner.launch": later(lambda: horovod.unwrap),
    "horovod.run": later(lambda: horovod.unwrap),
    **programs.PROGRAM_MODULES,
    **dict.fromkeys(profilers.MODULES, profilers.unwrap),
}
"""Module of `python -m` -> how it is taken off."""


def load_launchers() -> None:
    """Import every launcher, so that the first command of one does not wait for it."""
    load(
        accelerate,
        byteps,
        colossalai,
        composer,
        deepspeed,
        fabric,
        horovod,
        ray,
        torchrun,
        trl,
    )


def unwrap(line: Line) -> Step | None:
    """Return *line* with its outermost layer taken off, or None if that is no launcher."""
    if python.is_python(line.name):
        step = python.unwrap(line)
        module = step.program.text if step and step.program and step.is_module else ""
        if step is not None and step.program is not None and module in MODULES:
            return MODULES[module](line.inner(step.program, *step.rest))
        return step
    if line.name.endswith(".py"):
        return Step(rest=line.words[1:], program=line.words[0])
    if line.name.startswith("--"):
        return torchrun.unwrap_bare(line)
    launcher = LAUNCHERS.get(line.name)
    if launcher is None and wrappers.is_entry_script(line.name):
        launcher = wrappers.unwrap_entry
    return launcher(line) if launcher else None
