"""What a container died of, by its message, its status, and what the agent saw."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from admission.controller.deaths import Of, cause_of, death_of, failed_first, is_full
from admission.controller.pods import Ending, PodView, cut_pod
from estimator.spec import Framework
from estimator.units import GIB
from tests.admission.controller.dead import dead_pod


def ended(message: str, *, code: int = 1, reason: str = "Error", at: str = "2030") -> Ending:
    """Return how a container ended."""
    return Ending(
        container="train",
        exit_code=code,
        reason=reason,
        message=message,
        finished=at,
        restarts=0,
        is_current=True,
    )


def view(**fields: Any) -> PodView:
    """Return a pod that ended."""
    kept = cut_pod(dead_pod(**fields))
    assert kept is not None
    return PodView(kept)


TORCH, JAX = Framework.PYTORCH, Framework.JAX
TF, MXNET = Framework.TENSORFLOW, Framework.MXNET


@pytest.mark.parametrize(
    ("message", "framework"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", TORCH),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 MiB", TORCH),
        ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; ...", TORCH),
        ("RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be", TORCH),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate", TORCH),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate", TORCH),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", TORCH),
        (
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying "
            "to allocate 4770354232 bytes.",
            JAX,
        ),
        ("RuntimeError: Resource exhausted: Out of memory while trying to allocate 5 bytes", JAX),
        (
            "RESOURCE_EXHAUSTED: Failed to allocate request for 2.99GiB (3206250496B) on device "
            "ordinal 0",
            JAX,
        ),
        (
            "ResourceExhaustedError: OOM when allocating tensor with shape[32,1024,64,64] and type "
            "float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
            TF,
        ),
        ("MXNetError: [18:53:03] src/storage/./pooled_storage_manager.h:157: cudaMalloc failed: "
         "out of memory", MXNET),
        ("MXNetError: cudaMalloc retry failed: out of memory", MXNET),
        ("gpu_async_1 cuMemAllocAsync failed: CUDA_ERROR_OUT_OF_MEMORY: out of memory", None),
        ("NCCL WARN Cuda failure 2 'out of memory'", None),
    ],
)  # fmt: skip
def test_frameworks_say_that_the_card_was_full(message: str, framework: Framework | None) -> None:
    """Each in its words."""
    assert cause_of(ended(message)) == (Of.GPU, framework)


@pytest.mark.parametrize(
    "message",
    [
        "grpc: RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Requests'",
        "status = StatusCode.RESOURCE_EXHAUSTED: Received message larger than max (5 vs. 4)",
        "ResourceExhaustedError: OOM when allocating tensor with shape[9] and type float on "
        "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu",
        "ResourceExhaustedError: {{function_node __wrapped__}} /tmp/x; No space left on device",
        "MemoryError: Unable to allocate 93.1 GiB for an array",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 400 bytes. RuntimeError",
        "ValueError: the batch is out of range",
    ],
)
def test_other_things_run_out_as_well(message: str) -> None:
    """A quota, a message, the host's memory, a disk."""
    assert cause_of(ended(message))[0] is Of.OTHER


def test_the_kernel_kills_for_the_hosts_memory() -> None:
    """Whatever the log ends with."""
    message = "CUDA out of memory. Tried to allocate"

    assert cause_of(ended(message, code=137, reason="OOMKilled"))[0] is Of.HOST
    assert cause_of(ended("", code=137))[0] is Of.HOST


@pytest.mark.parametrize(
    "message",
    [
        "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 3.",
        "RuntimeError: [1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)",
        "RuntimeError: Connection closed by peer [10.0.0.1]:2",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process",
    ],
)
def test_ranks_whose_peer_is_gone_say_nothing_of_why(message: str) -> None:
    """Whoever failed first does."""
    assert cause_of(ended(message))[0] is Of.PEER


SUMMARY = (
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
)


@pytest.mark.parametrize(
    ("message", "code", "of"),
    [
        ("", 1, Of.SILENT),
        ("\n", 134, Of.SILENT),
        (SUMMARY, 1, Of.SILENT),
        ("", 139, Of.OTHER),
        ("AssertionError: loss is nan", 1, Of.OTHER),
        (f"AssertionError: loss is nan\n{SUMMARY}", 1, Of.OTHER),
    ],
    ids=["nothing", "aborted", "torchrun", "segfault", "python", "python-torchrun"],
)
def test_a_log_that_says_nothing(message: str, code: int, of: Of) -> None:
    """Only then what it held counts."""
    assert cause_of(ended(message, code=code))[0] is of


def test_what_the_agent_saw_goes_with_it() -> None:
    """The most of one card."""
    peaks = orjson.dumps({"train": {"GPU-1": 14 * GIB, "GPU-2": 3 * GIB}, "other": {"G": 99 * GIB}})

    death = death_of(view(message="", notes={"vramgate.dev/peak-bytes": peaks.decode()}))

    assert death is not None
    assert death.held == 14 * GIB
    assert death.is_likely
    assert is_full(death, 14 * GIB + GIB // 4)
    assert not is_full(death, 16 * GIB)


def test_a_pod_that_died_of_something_else_is_no_death() -> None:
    """Nothing to look at."""
    assert death_of(view(message="ValueError: no")) is None


def test_who_failed_first_tells() -> None:
    """A silent rank after a peer's failure died of that."""
    silent = death_of(view(message="", finished="2030-01-01T00:00:05Z"))
    before = view(message="ValueError: no", finished="2030-01-01T00:00:04Z", name="train-1")
    after = view(message="ValueError: no", finished="2030-01-01T00:00:06Z", name="train-2")

    assert silent is not None
    assert failed_first(silent, [after])
    assert not failed_first(silent, [before, after])
