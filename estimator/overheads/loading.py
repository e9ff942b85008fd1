"""How a job's CUDA modules reach the card: all at once, or as they are used.

    CUDA version, environment, driver -> Loading

PyTorch asks for lazy loading since 1.13 where the job says nothing (`_lazy_init` in
torch/cuda/__init__.py, pytorch/pytorch#86509); CUDA itself does on Linux since 12.2.
Both need a runtime of 11.7 (CUDA Programming Guide, "Lazy Loading").
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from estimator.catalog.stacks import Version


class Loading(StrEnum):
    """How CUDA modules reach the card."""

    EAGER_10 = "eager-10"
    """CUDA 10 and older."""
    EAGER_11 = "eager-11"
    """CUDA 11.0-11.6, or a later one told to: many more kernels in the wheels."""
    LAZY = "lazy"


EAGER_BEFORE: Version = (11, 0)
LAZY_SINCE: Version = (11, 7)
LAZY_BY_DEFAULT: Version = (12, 2)
LAZY_DRIVER = 515
"""First driver whose user-mode library can load lazily."""


def loadings_of(
    cuda: Version, environment: Mapping[str, str], driver: str | None = None
) -> tuple[Loading, ...]:
    """Return how modules may be loaded under *cuda*, the likeliest last.

    A driver before 515 loads eagerly, unless the image brings a newer user-mode library
    (forward compatibility): both are possible then.
    """
    if cuda < EAGER_BEFORE:
        return (Loading.EAGER_10,)
    if cuda < LAZY_SINCE or _is_told_to_be_eager(cuda, environment):
        return (Loading.EAGER_11,)
    branch = (driver or "").partition(".")[0]
    if branch.isdecimal() and int(branch) < LAZY_DRIVER:
        return (Loading.LAZY, Loading.EAGER_11)
    return (Loading.LAZY,)


def _is_told_to_be_eager(cuda: Version, environment: Mapping[str, str]) -> bool:
    """Return whether the job sets `CUDA_MODULE_LOADING` to EAGER, or to a default that is."""
    mode = environment.get("CUDA_MODULE_LOADING", "").strip().upper()
    return mode == "EAGER" or (mode == "DEFAULT" and cuda < LAZY_BY_DEFAULT)
