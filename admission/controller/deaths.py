"""What a container died of: too little GPU memory, too little host memory, a peer, anything else.

    how a container ended, what the agent saw of it -> Death

Pure. It is an exception like any other, with exit status 1 (134 where C++ throws), so what tells is
the end of the log that the kubelet keeps as the container's message, or else the most memory that
the node agent saw it hold. Sources of the messages:

* PyTorch: `CUDA out of memory. Tried to allocate`, `CUDA error: out of memory`, of 2.15.0's
  `libc10_cuda.so`; `CUBLAS_STATUS_ALLOC_FAILED` of its `libtorch_cuda.so`. The class is
  `torch.OutOfMemoryError`, `torch.cuda.OutOfMemoryError` before 2.5; `HIP out of memory` on AMD.
* JAX, XLA: `RESOURCE_EXHAUSTED: Out of memory while trying to allocate` (jax-ml/jax#13428;
  `Resource exhausted:` in old ones, #788), `Failed to allocate request for … on device ordinal 0`
  (ecmwf-lab/ai-models-graphcast#18), `CUDA_ERROR_OUT_OF_MEMORY` (NovaSky-AI/SkyRL#624).
* TensorFlow 2.21 `libtensorflow_framework.so`: `OOM when allocating tensor with shape … and type …
  on …/device:GPU:0 by allocator GPU_0_bfc`: the device tells it from the host's memory.
* MXNet: `cudaMalloc failed: out of memory`, `cudaMalloc retry failed: out of memory`
  (apache/mxnet#16803, `src/storage/pooled_storage_manager.h`).

`RESOURCE_EXHAUSTED` alone is also what a quota, a full queue or a long message is called (gRPC), so
it says nothing without one of these. Not told: a program that catches the error and ends well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from admission.controller.pods import Ending, PodView
from admission.peaks import ANNOTATION, read
from estimator.spec import Framework

HOST_REASON, KILLED = "OOMKilled", 137
MARK_PERCENT = 97
"""Of what a card gives: a container that held as much and failed silently had no more to get.
PyTorch's allocator asks the driver for 2 MiB to 20 MiB at a time, and libraries for some hundred
MiB of an empty card; what is left over is less than this of the smallest cards."""
SILENT_STATUSES = (1, 134)
"""Of a Python exception, and of a C++ one that nobody caught."""


class Of(StrEnum):
    """What a container died of."""

    GPU = "gpu"
    """Too little memory on its card."""
    HOST = "host"
    """Too little of the node's memory: the kernel killed it."""
    PEER = "peer"
    """Another rank was gone: whoever failed first tells why."""
    OTHER = "other"
    SILENT = "silent"
    """Nothing says; what it held of the card may."""


_TORCH, _XLA, _TF, _MXNET = Framework.PYTORCH, Framework.JAX, Framework.TENSORFLOW, Framework.MXNET
_MESSAGES: tuple[tuple[Framework | None, re.Pattern[str]], ...] = (
    (_TORCH, re.compile(r"torch\.(cuda\.)?OutOfMemoryError|(CUDA|HIP) out of memory\b")),
    (_TORCH, re.compile(r"\b(CUDA|HIP)( driver)? error: out of memory")),
    (_TORCH, re.compile(r"CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED")),
    (_MXNET, re.compile(r"cudaMalloc (retry )?failed: out of memory")),
    (_MXNET, re.compile(r"== cudaSuccess[^\n]{0,80}CUDA: out of memory")),
    (_TF, re.compile(r"OOM when allocating[^\n]{0,400}(device:GPU|GPU_\d+_bfc)")),
    (
        _XLA,
        re.compile(
            r"(RESOURCE_EXHAUSTED|Resource exhausted): "
            r"(Out of memory while trying to allocate|Failed to allocate request for)"
        ),
    ),
    (_XLA, re.compile(r"Failed to allocate request for [^\n]{1,60} on device ordinal \d")),
    (None, re.compile(r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation")),
    (None, re.compile(r"Cuda failure (\d+ )?'out of memory'")),
)
_PEERS = re.compile(
    r"NCCL communicator was aborted|ncclRemoteError|ncclSystemError|Connection (closed|reset) by "
    r"(remote )?peer|Watchdog caught collective operation timeout|SIGTERM|SignalException"
)
"""What is left of ranks whose peer is gone: PyTorch's and NCCL's words."""
_SUMMARY = re.compile(r"ChildFailedError|elastic/errors\.html")
"""torchrun's last page, which may push what a rank said out of the end of the log."""
_RAISED = re.compile(r"^(?!.*ChildFailedError)[\w.]*(Error|Exception|Interrupt)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """How one container died."""

    of: Of
    ending: Ending
    framework: Framework | None = None
    """Whose message it is, where the message tells."""
    held: int = 0
    """The most of one card that the agent saw it hold, in bytes; 0 where it saw nothing."""
    is_likely: bool = False
    """Nothing was said: what it held is all that tells."""


def death_of(pod: PodView) -> Death | None:
    """Return the last death of *pod* that matters: of its card, or one that may be; else None."""
    peaks = read(pod.annotations.get(ANNOTATION, ""))
    held: dict[str, int] = {}
    for (container, _), nbytes in peaks.items():
        held[container] = max(nbytes, held.get(container, 0))
    found = [_death(ending, held) for ending in pod.endings]
    matters = [each for each in found if each.of in (Of.GPU, Of.SILENT)]
    return max(matters, key=lambda each: (each.of is Of.GPU, each.ending.finished), default=None)


def cause_of(ending: Ending) -> tuple[Of, Framework | None]:
    """Return what *ending* says of itself, and the framework whose words it uses."""
    if ending.reason == HOST_REASON or ending.exit_code == KILLED:
        return Of.HOST, None
    for framework, pattern in _MESSAGES:
        if pattern.search(ending.message):
            return Of.GPU, framework
    if _PEERS.search(ending.message):
        return Of.PEER, None
    is_silent = ending.exit_code in SILENT_STATUSES and (
        not ending.message.strip() or _SUMMARY.search(ending.message) is not None
    )
    if is_silent and not _RAISED.search(ending.message):
        return Of.SILENT, None
    return Of.OTHER, None


def is_full(death: Death, budget: int) -> bool:
    """Return whether a silent *death* had taken all of a card that gives *budget* bytes."""
    return death.held * 100 >= budget * MARK_PERCENT


def failed_first(death: Death, others: Iterable[PodView]) -> bool:
    """Return whether no container of *others*, of the same workload, failed before *death*.

    Seconds are as exact as the API server is: of two in one second both may be the first.
    """
    at = death.ending.finished
    return not any(
        ending.finished < at
        for pod in others
        for ending in pod.endings
        if ending.finished and cause_of(ending)[0] not in (Of.GPU,)
    )


def _death(ending: Ending, held: Mapping[str, int]) -> Death:
    of, framework = cause_of(ending)
    nbytes = held.get(ending.container, 0)
    return Death(of=of, ending=ending, framework=framework, held=nbytes, is_likely=of is Of.SILENT)
