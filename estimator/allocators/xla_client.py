"""The allocator of a JAX job: best fit with coalescing, set up by the environment of XLA's client.

    environment -> XlaClientPolicy, or UnsupportedJobError

By default it takes three quarters of the card before the first operation, and never more.
Source: jaxlib 0.10.2 `xla_client.py` (`generate_pjrt_gpu_plugin_options`);
openxla/xla@4336d12e xla/pjrt/gpu/gpu_helpers.cc (`CreateBFCAllocator`: a share of the total).
Not modelled: unified memory, the separate pool of collectives
(`XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from estimator.allocators.bfc import BfcAllocator, BfcSettings
from estimator.allocators.exact import ExactAllocator
from estimator.allocators.protocol import Allocator
from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.notes import UnknownCode

DEFAULT_FRACTION = 0.75
FRACTIONS = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
"""The share of the card; the second name is the old one. Both at once end the job."""
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
KIND = "XLA_PYTHON_CLIENT_ALLOCATOR"
POOLED = ("default", "bfc")
DIRECT = "platform"
OTHERS = ("cuda_async", "vmm")
PATH = "runtime.env"


@dataclass(frozen=True, slots=True, kw_only=True)
class XlaClientPolicy:
    """A JAX job's settings as an `AllocatorPolicy`."""

    fraction: float = DEFAULT_FRACTION
    preallocates: bool = True
    is_pooled: bool = True
    """False: every array is asked of the driver and given back at once."""

    def allocator(self, *, capacity: int | None = None, allowed: int | None = None) -> Allocator:
        """Return a fresh allocator."""
        if not self.is_pooled:
            bounds = [bound for bound in (capacity, allowed) if bound is not None]
            return ExactAllocator(capacity=min(bounds, default=None))
        settings = BfcSettings(allow_growth=not self.preallocates, garbage_collection=False)
        return BfcAllocator(settings, limit=allowed, capacity=capacity)

    def limit(self, usable: int, *, beside: int) -> int | None:  # noqa: ARG002
        """Return the share of the card that the pool may hold."""
        return int(usable * self.fraction) if self.is_pooled else None

    def preallocated(self, usable: int, *, beside: int) -> int | None:
        """Return what the pool takes before the first operation, None if it grows."""
        return self.limit(usable, beside=beside) if self.preallocates else None


def xla_client_policy(environment: Mapping[str, str]) -> XlaClientPolicy:
    """Return the policy that *environment* sets.

    Raises:
        SpecError: if a value is none that JAX takes.
        UnsupportedJobError: if the allocator it names is not modelled.
    """
    kind = environment.get(KIND, "").lower() or POOLED[0]
    if kind in OTHERS:
        raise UnsupportedJobError(
            f"{PATH}: the allocator '{kind}' of {KIND} is not modelled",
            code=UnknownCode.ALLOCATOR,
            path=PATH,
        )
    if kind not in (*POOLED, DIRECT):
        raise _wrong(f"{KIND}={kind!r} is none of {', '.join((*POOLED, DIRECT, *OTHERS))}")
    told = [name for name in FRACTIONS if environment.get(name)]
    if len(told) > 1:
        raise _wrong(f"{' and '.join(told)} are both set; JAX ends at that")
    fraction = _fraction(environment[told[0]], told[0]) if told else DEFAULT_FRACTION
    word = environment.get(PREALLOCATE, "")
    return XlaClientPolicy(
        fraction=fraction,
        preallocates=kind in POOLED and word not in ("false", "False", "0"),
        is_pooled=kind in POOLED,
    )


def _fraction(text: str, name: str) -> float:
    try:
        fraction = float(text)
    except ValueError:
        fraction = math.nan
    if not 0 < fraction <= 1:
        raise _wrong(f"{name}={text!r} is no share of a card: accepted are numbers over 0, up to 1")
    return fraction


def _wrong(message: str) -> SpecError:
    return SpecError([Problem(path=PATH, message=message)])
