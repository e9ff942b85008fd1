"""What of a model's state one rank holds: weights, gradients, optimizer states, in which dtype.

    JobSpec -> Shares

Source: pytorch 2.15.0 `distributed/fsdp/_fully_shard/_fsdp_param_group.py`; microsoft/DeepSpeed@
38327e07 `deepspeed/runtime/zero/` (`stage_1_and_2.py`, `stage3.py`, `config.py`): weights are
trained with fp32 masters, whose shares are per rank; NVIDIA/Megatron-LM@00caa53a
`distributed_optimizer` (6 + 12/DP bytes a parameter).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from estimator.errors import UnsupportedJobError
from estimator.notes import UnknownCode
from estimator.spec import JobSpec, Precision, Strategy
from estimator.spec.training import Parallelism
from estimator.spec.vocabulary import DType, Implementation, Offload

FSDP2_SINCE = (2, 6)
BYTES = {DType.FP32: 4, DType.BF16: 2, DType.FP16: 2}
FP32 = 4
SIXTEEN = (Precision.BF16, Precision.FP16)
TRACED_16 = {Precision.AMP_BF16: Precision.BF16, Precision.AMP_FP16: Precision.FP16}
ZERO = {Strategy.ZERO1: 1, Strategy.ZERO2: 2, Strategy.ZERO3: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How one rank of a data-parallel group holds the state. Bytes are a weight's."""

    group: int
    """Ranks that share it."""
    stage: int
    """What is shared: 1 states, 2 gradients too, 3 weights too."""
    traced: int
    """Bytes of a weight in the trace."""
    weight: int
    """Bytes of a weight as it is kept."""
    reduce: int
    """Bytes of a gradient while it is reduced."""
    master: int
    """Bytes of a master weight beside the kept one; 0: none."""
    main_gradients: bool = False
    """Whether fp32 gradients of everything are kept from the start (Megatron)."""
    offload: Offload = Offload.NONE


def shares_of(spec: JobSpec) -> Shares | None:
    """Return how the ranks of *spec* share the state, None if every one holds all of it."""
    parallel = spec.parallelism
    # Ranks that have other pieces of the same sequence share the state too.
    group = (parallel.shard_group or parallel.data_parallel) * parallel.context_parallel
    if parallel.strategy is Strategy.FSDP:
        mixed = parallel.mixed_precision
        kept = 2 if spec.training.precision in SIXTEEN else 4
        return Shares(
            group=group,
            stage=3,
            traced=kept if mixed is None else BYTES[mixed.param],
            weight=kept,
            reduce=kept if mixed is None else BYTES[mixed.reduce],
            master=0,
            offload=parallel.offload,
        )
    if not has_masters(parallel):
        return None
    is_zero = parallel.strategy in ZERO
    is_low = spec.training.precision in SIXTEEN or spec.training.precision in TRACED_16
    width = 2 if is_low else 4
    return Shares(
        group=group if is_zero or parallel.distributed_optimizer else 1,
        stage=ZERO.get(parallel.strategy, 1),
        traced=width,
        weight=width,
        reduce=width,
        # DeepSpeed clones its part even where weights are fp32 already.
        master=4 if is_low or is_zero else 0,
        main_gradients=not is_zero,
        offload=parallel.offload,
    )


def is_second_fsdp(spec: JobSpec) -> bool:
    """Return whether *spec* shards with `fully_shard`: as it says, else as its PyTorch does.

    Source: `fully_shard` of torch.distributed.fsdp became public in PyTorch 2.6. Without a release
    the newest is taken.
    """
    parallel = spec.parallelism
    if parallel.strategy is not Strategy.FSDP:
        return False
    if parallel.implementation is not None:
        return parallel.implementation is Implementation.FSDP2
    numbers = re.match(r"(\d+)\.(\d+)", spec.framework_version or "")
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= FSDP2_SINCE


def lets_go_of_outputs(spec: JobSpec) -> bool:
    """Return whether the outputs of *spec* are taken to be gone before the backward pass.

    Every trainer known with `fully_shard` does it. Source: pytorch/torchtitan@9dec370a `train.py`
    and @e7c0cae9 `torchtitan/train.py` (`del pred`), pytorch/torchtune@30b8519e `recipes/
    full_finetune_distributed.py` (`del logits`), huggingface/transformers 5.24.0 `trainer.py`
    (`compute_loss` returns the loss alone).
    """
    return is_second_fsdp(spec) and "keep_outputs" not in spec.training.model_fields_set


def require_group(spec: JobSpec) -> None:
    """Refuse a job whose state is shared among nobody knows how many ranks.

    A group of one would be the largest there is: the job would be denied for what it does not need.

    Raises:
        UnsupportedJobError: if the strategy shares the state and no number of ranks is given.
    """
    parallel = spec.parallelism
    is_shared = parallel.strategy is Strategy.FSDP or parallel.strategy in ZERO
    given = {"data_parallel", "shard_group", "context_parallel"} & parallel.model_fields_set
    if is_shared and not given:
        raise UnsupportedJobError(
            f"parallelism.dataParallel: '{parallel.strategy}' shares the state among ranks, and "
            "their number is not known",
            code=UnknownCode.PARALLELISM,
            path="parallelism.dataParallel",
            hint="say how many ranks there are: parallelism: {dataParallel: …}",
        )


def has_masters(parallel: Parallelism) -> bool:
    """Return whether the engine keeps fp32 masters of its own: DeepSpeed and Megatron."""
    is_megatron = parallel.implementation is Implementation.MEGATRON
    return parallel.strategy in ZERO or is_megatron or parallel.distributed_optimizer


def traced_precision(spec: JobSpec) -> Precision:
    """Return the precision one rank computes in, which is the one that is traced."""
    precision, mixed = spec.training.precision, spec.parallelism.mixed_precision
    if spec.parallelism.strategy is Strategy.FSDP and mixed is not None:
        return {DType.BF16: Precision.BF16, DType.FP16: Precision.FP16}.get(mixed.param, precision)
    if has_masters(spec.parallelism):
        return TRACED_16.get(precision, precision)
    return precision
