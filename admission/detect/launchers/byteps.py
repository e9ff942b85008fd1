"""`bpslaunch`: one process a GPU on workers; servers and the scheduler train nothing.

Source: bytedance/byteps@f5df52f `launcher/launch.py`: `DMLC_ROLE`, and one process for each device
in `NVIDIA_VISIBLE_DEVICES`, which the device plugin sets to those of the container.
"""

from __future__ import annotations

from admission.detect.invocation import Launch, Spawn
from admission.detect.launchers.step import Line, Step
from admission.detect.words import Word

_SERVES = Word(text="true")
"""Stands for what a server runs."""


def unwrap(line: Line) -> Step | None:
    """Return the command that each process of a worker runs."""
    role = line.value("DMLC_ROLE")
    if role is not None and role.is_known and role.text not in ("worker",):
        return Step(rest=(_SERVES,))
    if len(line.words) < 2:
        return None
    launch = Launch(
        launcher="bpslaunch",
        is_distributed=True,
        spawn=Spawn.ALL,
    )
    return Step(rest=line.words[1:], launch=launch)
