"""For which cards a step is compiled.

compute capability, number of cards -> Target
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.catalog.xla_targets import xla_target
from estimator.errors import UnsupportedJobError
from estimator.notes import UnknownCode

SCARCE = 0.7
"""Share of a card's memory from which a step may be compiled otherwise.

XLA plans for 80 % of the card's memory less 5 %, and computes values again where a plan is over it.
Source: openxla/xla@4336d12e xla/service/gpu/gpu_hlo_schedule.cc (`GetSchedulerMemoryLimit`),
`xla_gpu_memory_limit_slop_factor`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A kind of card as XLA is told of it, and how many of them share the step."""

    text: str
    """The text of a `GpuTargetConfigProto`."""
    num_devices: int = 1


def target_for(xla: str | None, *, num_devices: int = 1, memory_bytes: int | None = None) -> Target:
    """Return the target of traits' *xla*, such as `8.0`, with *memory_bytes* or with plenty.

    Raises:
        UnsupportedJobError: if XLA does not compile for such cards, or we do not know what to say.
    """
    major, _, minor = (xla or "").partition(".")
    known = xla_target((int(major), int(minor))) if major and minor else None
    if known is None:
        raise UnsupportedJobError(
            f"framework: XLA's plans for cards of compute capability {xla or 'unknown'} are not"
            " modelled",
            code=UnknownCode.DEVICE,
            path="framework",
        )
    return Target(text=known.text(memory_bytes), num_devices=num_devices)
