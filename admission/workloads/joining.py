"""Roles of one job, joined: whose command line is run in the pods that have none.

    Pods, units -> units with the program that uses their GPUs

An MPI launcher has the command and its workers have the GPUs; in Ray the driver runs on the head.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from admission.values import Program, Unit
from admission.workloads.fields import entries
from admission.workloads.idle import only_waits, words_of
from admission.workloads.kind import Pods
from admission.workloads.units import Template

_STARTERS = ("mpirun", "mpiexec", "horovodrun", "deepspeed", "pdsh", "orterun", "ray")
"""Programs that start processes in other pods."""


def joined(units: tuple[Unit, ...], pods: Pods) -> tuple[Unit, ...]:
    """Return *units*, those that only wait with the program of the role that starts them.

    A unit stays as it is where no other role, or more than one, may be the one.
    """
    if not units or len(pods.templates) < 2:
        return units
    return tuple(_joined(unit, pods) for unit in units)


def _joined(unit: Unit, pods: Pods) -> Unit:
    if unit.program.path != unit.container_path or unit.role == pods.launcher:
        return unit
    is_empty = not words_of(unit.container_spec)
    if not only_waits(unit.container_spec) and not (is_empty and pods.launcher):
        return unit
    starter = _starter(unit, pods)
    if starter is None:
        return unit
    template, program = starter
    return replace(unit, program=program, injected=template.injected)


def _starter(unit: Unit, pods: Pods) -> tuple[Template, Program] | None:
    others = [
        (template, program)
        for template in pods.templates
        if template.role != unit.role
        for program in _programs(template)
    ]
    named = [found for found in others if found[0].role == pods.launcher]
    if named:
        busy = [found for found in named if not only_waits(found[1].container)]
        return (busy or named)[0]
    busy = [
        found
        for found in others
        if words_of(found[1].container) and not only_waits(found[1].container)
    ]
    starting = [found for found in busy if _starts_others(found[1])]
    best = starting or busy
    return best[0] if len(best) == 1 else None


def _programs(template: Template) -> Iterator[Program]:
    if template.program is not None:
        yield template.program
        return
    path = f"{template.pod_path}.containers"
    for index, (container, _) in enumerate(entries(template.pod.get("containers"), path)):
        yield Program(
            container=container, path=template.place("containers", index), pod=template.pod
        )


def _starts_others(program: Program) -> bool:
    text = " ".join(words_of(program.container))
    return any(word.rpartition("/")[2] in _STARTERS for word in text.split())
