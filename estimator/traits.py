"""The only things a frontend may know of a card.

    Device -> Traits

Part of a trace's key: two cards with equal traits share one trace.
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.device import Device


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What the card lets a framework choose while it runs."""

    flash_attention: bool
    """Flash kernels of SDPA exist (compute capability 8.0 and up)."""
    efficient_attention: bool
    """Memory-efficient kernels of SDPA exist (5.0 and up)."""
    native_bf16: bool
    """bf16 arithmetic in hardware (8.0 and up)."""
    xla_target: str | None = None
    """For which cards XLA compiles: their compute capability. None: the job is not compiled."""
    xla_memory_bytes: int | None = None
    """What XLA may plan for: short of memory it computes values again. None: more than enough."""


COMPILED = frozenset({"jax", "tensorflow"})
"""Frameworks whose steps XLA compiles for a card. Others share a trace between more cards."""


def traits_of(device: Device, framework: str = "") -> Traits:
    """Return the traits of *device* for jobs of *framework*.

    Source: pytorch/pytorch@001f694a `aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`
    (flash sm 80 to 121, efficient sm 50 to 121). Not modelled: cuDNN attention on sm 90 and 100.
    """
    capability = device.compute_capability
    is_compiled = framework in COMPILED
    return Traits(
        flash_attention=capability >= (8, 0),
        efficient_attention=capability >= (5, 0),
        native_bf16=capability >= (8, 0),
        xla_target=f"{capability[0]}.{capability[1]}" if is_compiled else None,
        xla_memory_bytes=device.usable_bytes if is_compiled else None,
    )
