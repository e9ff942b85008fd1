"""The cuDNN processes of the pool, one a library.

    devices, wanted version -> a connection for a fork, or none

A fork gets one connection: to the library that has answers for most of the cards it is asked
about, and of those to the one that is the job's own or the closest to it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path

from estimator.cudnn.support import Release, is_supported
from estimator.device import Device
from estimator.workers.cudnn_supervisor import CudnnSupervisor
from estimator.workers.limits import Limits


class Libraries:
    """Libraries in order of preference. Started on demand."""

    def __init__(self, folders: Sequence[Path], *, limits: Limits) -> None:
        self._supervisors = [CudnnSupervisor(folder, limits=limits) for folder in folders]

    def start(self) -> None:
        """Start the process of the first library, without waiting for it."""
        for supervisor in self._supervisors[:1]:
            supervisor.start()

    def connect(
        self, devices: Sequence[Device], *, wanted: int | None = None
    ) -> socket.socket | None:
        """Return a fork's end of a connection, None if there is no library to ask.

        *wanted* is the version the job brings, None if that is not known. A library that is not
        loaded yet is asked only if no loaded one has answers; it is started for later jobs.
        """
        for supervisor in self._supervisors:
            if supervisor.release is None:
                supervisor.start()
        ranked = sorted(self._supervisors, key=lambda each: rank(each.release, devices, wanted))
        connections = (supervisor.connect() for supervisor in ranked)
        return next((each for each in connections if each is not None), None)

    def pids(self) -> tuple[int, ...]:
        """Return the process ids of those that run."""
        processes = [supervisor.process for supervisor in self._supervisors]
        return tuple(process.pid for process in processes if process is not None)

    async def close(self) -> None:
        """End every process, and wait for that."""
        await asyncio.gather(*(supervisor.close() for supervisor in self._supervisors))


def rank(
    release: Release | None, devices: Sequence[Device], wanted: int | None
) -> tuple[int, bool, int]:
    """Return how far *release* is from the best one: a smaller value is better.

    First for how many of *devices* it has answers, then its version: that which is *wanted*, then
    the closest newer one, then the closest older one. None is not loaded: better than a library
    without answers, worse than any other.
    """
    if release is None:
        return 0, False, -1
    num_supported = sum(is_supported(release, device.compute_capability) for device in devices)
    if wanted is None:
        return -num_supported, False, 0
    return -num_supported, release.version < wanted, abs(release.version - wanted)
