"""What forks traced, kept for the same job at another batch.

    job -> contents

Bounded in bytes, the least recently used job forgotten first. Holds bytes and never looks into
them: the next fork checks what it reads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from estimator.units import MIB

MOST_BYTES = 16 * MIB
"""Of all jobs. A ResNet-50 takes 9 kB a batch, a Llama of any depth about as much."""
MOST_JOB_BYTES = 1 * MIB
"""Of one job: reading it takes a fork up to 0.1 s."""
MOST_CONTENTS = 32
"""Of one job: two batches of each rank, with few layers and some, and of its cheapest form."""


class Keeping:
    """The kept contents of many jobs. Belongs to one event loop."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._jobs: OrderedDict[str, dict[bytes, None]] = OrderedDict()
        self.nbytes = 0
        """Bytes of all contents."""

    def of(self, job: str) -> tuple[bytes, ...]:
        """Return what is kept of *job* and count it as used."""
        if job not in self._jobs:
            return ()
        self._jobs.move_to_end(job)
        return tuple(self._jobs[job])

    def add(self, job: str, contents: Iterable[bytes]) -> None:
        """Keep *contents* of *job* as far as there is room; equal ones once."""
        kept = self._jobs.setdefault(job, {})
        self._jobs.move_to_end(job)
        size = sum(map(len, kept))
        for content in contents:
            size += len(content)
            if content in kept or len(kept) >= MOST_CONTENTS or size > MOST_JOB_BYTES:
                size -= len(content)
                continue
            kept[content] = None
            self.nbytes += len(content)
        if not kept:
            del self._jobs[job]
        while self.nbytes > self._most_bytes:
            _, forgotten = self._jobs.popitem(last=False)
            self.nbytes -= sum(map(len, forgotten))
