"""Which answers of which library mean something.

    release of cuDNN, compute capability -> bool

A list, as cuDNN answers for any number it is told, also for one that no card has. What is not
listed is not asked.

Source: support matrices of cuDNN 9.10.2 and 9.17.0 (docs.nvidia.com/deeplearning/cudnn), less
what was not tried or crashed: asked about sm 100, 9.10.2 ends by a signal.
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.device import ComputeCapability


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A cuDNN library."""

    version: int
    """As `cudnnGetVersion` says it: 9.26.0 is 92600."""
    cuda: int
    """Major version of CUDA it was built for."""

    def __str__(self) -> str:
        return f"cuDNN {version_text(self.version)} for CUDA {self.cuda}"


def version_text(version: int) -> str:
    """Return *version* as people write it: 92600 is 9.26.0."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    cuda: int
    since: int
    until: int
    """First version it is not true for."""
    capabilities: frozenset[ComputeCapability]


_TURING_TO_HOPPER = frozenset({(7, 5), (8, 0), (8, 6), (8, 9), (9, 0)})
_ROWS = (
    # Volta's last release is 9.10; older architectures are not in cudnn_devices.yaml.
    _Row(cuda=12, since=90800, until=91100, capabilities=_TURING_TO_HOPPER | {(7, 0)}),
    _Row(cuda=12, since=91100, until=100000, capabilities=_TURING_TO_HOPPER),
    _Row(cuda=13, since=91200, until=100000, capabilities=_TURING_TO_HOPPER | {(10, 0), (12, 0)}),
)


def is_supported(release: Release, capability: ComputeCapability) -> bool:
    """Return whether the answers of *release* for cards of *capability* mean something."""
    return any(
        row.cuda == release.cuda
        and row.since <= release.version < row.until
        and capability in row.capabilities
        for row in _ROWS
    )
