"""How many ranks a job has, and how many communicators one of them holds.

Parallelism -> numbers for the memory of NCCL
"""

from __future__ import annotations

import math

from estimator.spec.training import Parallelism


def ranks_of(parallel: Parallelism) -> int:
    """Return the number of ranks: as the spec says, else the product of its degrees."""
    degrees = (
        parallel.data_parallel,
        parallel.tensor_parallel,
        parallel.pipeline_parallel,
        parallel.context_parallel,
    )
    return parallel.world_size or math.prod(degrees)


def communicators_of(parallel: Parallelism) -> int:
    """Return how many communicators a rank holds: one for each way it is parallel.

    A hybrid shards in one group and replicates in another. Jobs that are parallel in more than
    one way have one of all ranks too, for what all of them agree on (gradient norms, barriers).
    Source: the mesh dimensions of pytorch/torchtitan@b5bcd76c `distributed/parallel_dims.py`;
    NVIDIA/Megatron-LM@00caa53a `core/parallel_state.py` makes more of them, and NCCL opens one
    when it is first used. Not modelled: which of them share buffers (`ncclCommSplit`).
    """
    is_hybrid = (
        parallel.shard_group is not None and 1 < parallel.shard_group < parallel.data_parallel
    )
    ways = (
        parallel.data_parallel > 1,
        is_hybrid,
        parallel.tensor_parallel > 1,
        parallel.pipeline_parallel > 1,
        parallel.context_parallel > 1,
        parallel.expert_parallel > 1,
    )
    many = sum(ways)
    return many + 1 if many > 1 else max(1, many)
