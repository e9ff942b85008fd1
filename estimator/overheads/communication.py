"""Buffers of NCCL.

    ranks, interconnect -> bytes of one rank

Channels x buffers of the three protocols x communicators; the channels depend on the card, its
links and the number of ranks, so the table keeps what was read of one communicator.
A communicator connects its channels when an algorithm is first used, and only those of that one
(`NCCL_RUNTIME_CONNECT`, since 2.22). So of more communicators only one channel each is certain.
Source: NVIDIA/nccl@5067397c `src/init.cc` (`runtimeConn`, `computeBuffSizes`), `src/enqueue.cc`
(`initAlgoChannels`), `src/transport/p2p.cc` (what a connection allocates), `src/include/device.h`.
Not modelled: InfiniBand adapters (more of them cost more, NVIDIA/nccl#818), `commSplit` sharing,
pipeline stages that hold several communicators to their neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from estimator.overheads.ranges import NOTHING, Range, mib
from estimator.units import MIB

NVLINK_PAIR = mib(512, 544, 1085)
"""Two ranks, a communicator. 4 x A100: 544 (NVIDIA/nccl#964); B300: 512 (NVIDIA/nccl#2363)."""
NVLINK_MANY = mib(512, 688, 1600)
"""More ranks. 4 x A100: 688 (NVIDIA/nccl#964); 8 x H100: 1,085 (#1685); 8 GPUs: 1,600 (#864)."""
PCIE = mib(50, 91, 544)
"""L4 trainer, any rank count, in all: 91 (agilerl-arena 1.29.0 specs.py). Upper end assumed."""

LL_BYTES = 8 * 512 * 8 * 16
"""Lines a thread x threads x steps x bytes of a line."""
LL128_BYTES = 120 * 640 * 8 * 8
"""Elements a thread x threads x steps x bytes of an element."""
SIMPLE = Range(low=4 * MIB, expected=4 * MIB, high=4 * MIB)
"""Unless `NCCL_BUFFSIZE` says otherwise."""


def communication_of(
    num_ranks: int, interconnect: str, environment: Mapping[str, str], num_communicators: int = 1
) -> Range:
    """Return what NCCL holds in one rank of a job of *num_ranks*.

    The low end holds one communicator as read, and one channel of each other.
    """
    if num_ranks <= 1:
        return NOTHING
    nvlink = NVLINK_PAIR if num_ranks == 2 else NVLINK_MANY
    one = PCIE if interconnect == "pcie" else nvlink
    first = _scaled(one, environment)
    channel = LL_BYTES + LL128_BYTES + _scaled(SIMPLE, environment).low
    others = num_communicators - 1
    return replace(first * num_communicators, low=first.low + min(channel, first.low) * others)


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
