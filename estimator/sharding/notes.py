"""What of a parallel job moves the figure and is not modelled, by name.

JobSpec -> Unknowns
"""

from __future__ import annotations

from estimator.notes import Unknown, UnknownCode
from estimator.spec import JobSpec, Strategy
from estimator.spec.vocabulary import Implementation, Wrap


def unknowns_of(spec: JobSpec) -> tuple[Unknown, ...]:
    """Return what is taken one way of several, or left out, in the estimate of one rank."""
    parallel = spec.parallelism
    is_fsdp = parallel.strategy is Strategy.FSDP
    is_zero = parallel.strategy in (Strategy.ZERO1, Strategy.ZERO2)
    accumulates = spec.training.gradient_accumulation_steps > 1
    is_second = parallel.implementation is not Implementation.FSDP1
    named = (
        (
            is_fsdp and accumulates and is_second,
            "training.gradientAccumulationSteps",
            "FSDP2 is taken to reduce gradients in every micro-batch: without, they stay whole",
        ),
        (
            is_fsdp and parallel.wrap is Wrap.SIZE,
            "parallelism.wrap",
            "units by size are taken in the order of loading, of 1e8 bytes and more",
        ),
        (
            is_zero,
            "parallelism.zero",
            "one reduce bucket: with overlap_comm, which is off by default, there are two",
        ),
        (
            parallel.strategy is Strategy.ZERO3,
            "parallelism.zero",
            "blocks are gathered one after the other: weights that are fetched ahead "
            "(prefetchElements) or kept for their next use (DeepSpeed's max_live_parameters, 1e9 "
            "elements by default) are left out",
        ),
        (
            parallel.expert_parallel > 1,
            "parallelism.expertParallel",
            "tokens are taken as evenly spread; buffers of the all-to-all are left out",
        ),
    )
    return tuple(
        Unknown(code=UnknownCode.PARALLELISM, path=path, reason=reason)
        for is_named, path, reason in named
        if is_named
    )
