"""What a program needs of an allocator: its free run, and the smallest cap it completes under.

    Trace, Device -> Need

Two cards that lower a trace to the same program share one need: it knows no capacity.
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.allocators.choice import policy_of
from estimator.allocators.protocol import Allocator, AllocatorPolicy
from estimator.cudnn import PlanSource
from estimator.device import Device
from estimator.kernels import End, Scratch, lower, uses_cudnn, version_of, workspaces_of
from estimator.notes import Assumption, Unknown
from estimator.program import Program
from estimator.replay import CAP_STEP, Replay, replay, smallest_cap
from estimator.spec.training import Runtime
from estimator.trace import Role, Trace
from estimator.units import round_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A trace lowered for one kind of card, and the allocator it runs on."""

    program: Program
    """Workspaces as expected."""
    frugal: Program
    """Every uncertain workspace at its low end."""
    lavish: Program
    """Every uncertain workspace at its high end."""
    policy: AllocatorPolicy
    unknowns: tuple[Unknown, ...]
    is_bounded: bool = False
    """Whether there are convolutions and cuDNN gave no answers about them."""

    @property
    def key(self) -> tuple[bytes, ...]:
        """Return what two cards must share to share a need."""
        programs = (self.program, self.frugal, self.lavish)
        return tuple(part for program in programs for part in _events_of(program))

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Return what lowering took for granted."""
        return self.program.assumptions

    def allocator(self, *, capacity: int | None = None, allowed: int | None = None) -> Allocator:
        """Return a fresh allocator of the job's settings."""
        return self.policy.allocator(capacity=capacity, allowed=allowed)

    def completes(self, *, capacity: int) -> bool:
        """Return whether the expected program completes within *capacity* bytes of segments."""
        return replay(self.program, self.allocator(capacity=capacity)).completed


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Bytes of segments, before any margin."""

    free: Replay
    """The run with all the memory it wants."""
    least: int
    """Smallest cap under which the frugal program completes."""
    enough: int
    """Smallest cap under which the expected program completes, choices included."""
    most: Replay
    """The lavish program with all the memory it wants."""


def lower_for(
    trace: Trace,
    device: Device,
    runtime: Runtime,
    plans: PlanSource | None = None,
    *,
    has_most: bool = True,
) -> Lowered:
    """Return *trace* as programs for *device* under the job's *runtime*.

    Convolutions are asked of *plans*, all at once; without it they are bounded. Without *has_most*
    nobody asks for the high end, and the expected program stands for it.
    """
    environment = runtime.env
    version = version_of(trace.framework_version)
    policy, unknowns = policy_of(
        trace.allocator, runtime, version=version, capability=device.compute_capability
    )
    workspaces = workspaces_of(trace, device, plans, runtime.cudnn)
    answers: dict[int, Scratch | Unknown] = {}

    def at(end: End) -> Program:
        return lower(
            trace,
            device,
            end=end,
            environment=environment,
            workspaces=workspaces,
            answers=answers,
        )

    program = at(End.EXPECTED)
    return Lowered(
        program=program,
        frugal=program if program.is_certain else at(End.LOW),
        lavish=at(End.HIGH) if has_most and not program.is_certain else program,
        policy=policy,
        unknowns=(*program.unknowns, *unknowns),
        is_bounded=workspaces.is_bounded and uses_cudnn(trace),
    )


def _events_of(program: Program) -> tuple[bytes, ...]:
    """Return what programs of one trace must share to be replayed the same."""
    return (
        program.sizes.tobytes(),
        program.kinds,
        program.ids.tobytes(),
        repr(sorted(program.choices.items())).encode(),
    )


def need_of(lowered: Lowered) -> Need:
    """Return the need of the programs; of one that is certain, its own at both ends."""
    free = replay(lowered.program, lowered.allocator())
    enough = enough_of(lowered, free)
    if lowered.program.is_certain:
        return Need(free=free, least=enough, enough=enough, most=free)
    frugal = replay(lowered.frugal, lowered.allocator())
    least = _smallest(lowered, lowered.frugal, frugal)
    is_lavish = _events_of(lowered.lavish) != _events_of(lowered.program)
    # Less scratch can happen to lay blocks out worse: the job may take either way.
    return Need(
        free=free,
        least=min(least, enough),
        enough=enough,
        most=replay(lowered.lavish, lowered.allocator()) if is_lavish else free,
    )


def enough_of(lowered: Lowered, free: Replay | None = None) -> int:
    """Return the smallest cap under which the expected program completes.

    *free* is its free run, if that is known already.
    """
    return _smallest(lowered, lowered.program, free or replay(lowered.program, lowered.allocator()))


def _smallest(lowered: Lowered, program: Program, free: Replay) -> int:
    """Return the smallest cap of *program*: never below what is live without its scratch."""
    if free.edge is not None:
        return round_up(free.edge, CAP_STEP)
    return smallest_cap(
        program,
        lambda cap: lowered.allocator(capacity=cap),
        low=free.allocated - free.live.get(Role.WORKSPACE, 0),
        high=free.reserved,
    )
