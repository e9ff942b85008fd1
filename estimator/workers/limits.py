"""What one estimate may use before it is ended.

settings -> Limits -> control message -> the fork's own limits
"""

from __future__ import annotations

from dataclasses import dataclass

from estimator.units import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one fork and of the processes beside it."""

    wall_seconds: float = 60.0
    """From the fork to its end. Waiting for a free slot does not count."""

    memory_bytes: int = 3 * GIB
    """Private memory beyond what the template had. A ResNet-50 trace was measured to
    take 32 MiB of it, others up to 200 MiB."""

    start_seconds: float = 180.0
    """How long a template may import. The PyTorch frontend took 8 to 33 seconds on two
    busy cores."""

    plans_seconds: float = 5.0
    """How long a fork waits for cuDNN to answer what it asks at once. A model asks 74
    questions on average and 225 at most, at 1 to 7 ms each on two busy cores."""

    spare_seconds: float = 20.0
    """How long a fork that has answered may trace the job at other batches. Each took as long as
    the answer, 0.3 to 1.4 s of the processor; it ends as soon as somebody asks for a fork."""

    question_seconds: float = 10.0
    """How long cuDNN may think about one question before its process is started anew. The
    slowest of 20,000 odd ones took 1.3 s, those of models take milliseconds."""

    isolation_required: bool = False
    """Nothing is estimated where the kernel lacks what isolates a fork."""

    kill_seconds: float = 2.0
    """How much later the pool ends a fork or a template that did not end itself."""
