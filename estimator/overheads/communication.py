"""Buffers of NCCL.

    ranks, interconnect -> bytes of one rank

Channels x `NCCL_BUFFSIZE` (4 MiB) x directions x communicators; the channels depend on the card,
its links and the number of ranks, so the table keeps what was read.
Not modelled: InfiniBand adapters (more of them cost more, NVIDIA/nccl#818), `commSplit` sharing,
pipeline stages that hold several communicators to their neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping

from estimator.overheads.ranges import NOTHING, Range, mib
from estimator.units import MIB

NVLINK_PAIR = mib(512, 544, 1085)
"""Two ranks, a communicator. 4 x A100: 544 (NVIDIA/nccl#964); B300: 512 (NVIDIA/nccl#2363)."""
NVLINK_MANY = mib(512, 688, 1600)
"""More ranks. 4 x A100: 688 (NVIDIA/nccl#964); 8 x H100: 1,085 (#1685); 8 GPUs: 1,600 (#864)."""
PCIE = mib(50, 91, 544)
"""L4 trainer, any rank count, in all: 91 (agilerl-arena 1.29.0 specs.py). Upper end assumed."""


def communication_of(
    num_ranks: int, interconnect: str, environment: Mapping[str, str], num_communicators: int = 1
) -> Range:
    """Return what NCCL holds in one rank of a job of *num_ranks*."""
    if num_ranks <= 1:
        return NOTHING
    nvlink = NVLINK_PAIR if num_ranks == 2 else NVLINK_MANY
    one = PCIE if interconnect == "pcie" else nvlink
    return _scaled(one, environment) * num_communicators


def _scaled(one: Range, environment: Mapping[str, str]) -> Range:
    """Return *one* scaled by `NCCL_BUFFSIZE`, whose default is 4 MiB."""
    text = environment.get("NCCL_BUFFSIZE", "")
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        return one
    size, default = int(text), 4 * MIB
    return Range(
        low=one.low * size // default,
        expected=one.expected * size // default,
        high=one.high * size // default,
    )
