"""Which CUDA and cuDNN a PyTorch release brings.

    torch version text -> Stack

A build tag (`+cu121`) beats the table: it names the CUDA of that wheel, not PyPI's default.

Source: metadata of the torch wheels on PyPI, Linux x86-64 (`requires_dist`:
nvidia-cuda-runtime-cu12, cuda-toolkit, nvidia-cudnn-cu12/13, nvidia-nccl-cu12/13), read in full
for 2.1-2.15. Before that the wheels held the libraries themselves; their CUDA is the default of
the release notes and their cuDNN is not recorded here.
Not modelled: conda builds, a cuDNN installed beside torch, ROCm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Version = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A PyTorch release and its libraries."""

    torch: Version
    cuda: Version
    cudnn: str | None = None
    nccl: str | None = None


STACKS: tuple[Stack, ...] = (
    Stack(torch=(1, 0), cuda=(9, 0)),
    Stack(torch=(1, 1), cuda=(9, 0)),
    Stack(torch=(1, 2), cuda=(10, 0)),
    Stack(torch=(1, 3), cuda=(10, 1)),
    Stack(torch=(1, 4), cuda=(10, 1)),
    Stack(torch=(1, 5), cuda=(10, 2)),
    Stack(torch=(1, 6), cuda=(10, 2)),
    Stack(torch=(1, 7), cuda=(10, 2)),
    Stack(torch=(1, 8), cuda=(10, 2)),
    Stack(torch=(1, 9), cuda=(10, 2)),
    Stack(torch=(1, 10), cuda=(10, 2)),
    Stack(torch=(1, 11), cuda=(10, 2)),
    Stack(torch=(1, 12), cuda=(10, 2)),
    Stack(torch=(1, 13), cuda=(11, 7)),
    Stack(torch=(2, 0), cuda=(11, 7)),
    Stack(torch=(2, 1), cuda=(12, 1), cudnn="8.9.2.26", nccl="2.18.1"),
    Stack(torch=(2, 2), cuda=(12, 1), cudnn="8.9.2.26", nccl="2.19.3"),
    Stack(torch=(2, 3), cuda=(12, 1), cudnn="8.9.2.26", nccl="2.20.5"),
    Stack(torch=(2, 4), cuda=(12, 1), cudnn="9.1.0.70", nccl="2.20.5"),
    Stack(torch=(2, 5), cuda=(12, 4), cudnn="9.1.0.70", nccl="2.21.5"),
    Stack(torch=(2, 6), cuda=(12, 4), cudnn="9.1.0.70", nccl="2.21.5"),
    Stack(torch=(2, 7), cuda=(12, 6), cudnn="9.5.1.17", nccl="2.26.2"),
    Stack(torch=(2, 8), cuda=(12, 8), cudnn="9.10.2.21", nccl="2.27.3"),
    Stack(torch=(2, 9), cuda=(12, 8), cudnn="9.10.2.21", nccl="2.27.5"),
    Stack(torch=(2, 10), cuda=(12, 8), cudnn="9.10.2.21", nccl="2.27.5"),
    Stack(torch=(2, 11), cuda=(13, 0), cudnn="9.19.0.56", nccl="2.28.9"),
    Stack(torch=(2, 12), cuda=(13, 0), cudnn="9.20.0.48", nccl="2.29.7"),
    Stack(torch=(2, 13), cuda=(13, 0), cudnn="9.20.0.48", nccl="2.29.7"),
    Stack(torch=(2, 14), cuda=(13, 0), cudnn="9.24.0.43", nccl="2.30.7"),
    Stack(torch=(2, 15), cuda=(13, 2), cudnn="9.26.0.51", nccl="2.30.7"),
)
"""One row a minor release, oldest first. 1.0-2.0: default wheel of the release notes (assumed)."""

NEWEST = STACKS[-1]


def stack_of(version: str | None) -> Stack | None:
    """Return the stack of a torch *version* such as `2.4.1+cu121`, or None if it is not known."""
    match = re.match(r"(\d+)\.(\d+)", version or "")
    if match is None:
        return None
    torch = (int(match[1]), int(match[2]))
    row = next((stack for stack in STACKS if stack.torch == torch), None)
    cuda = cuda_of_tag(version or "")
    if row is None or cuda is None or cuda == row.cuda:
        return row
    return Stack(torch=torch, cuda=cuda, cudnn=row.cudnn, nccl=row.nccl)


def cudnn_version(torch: str | None, named: str | None = None) -> int | None:
    """Return the cuDNN a job runs on as cuDNN counts: 9.1.0 is 90100; None: not known.

    It is the one the job has *named*, such as `9.26.0`, or that of its PyTorch release. Releases
    before 9 count thousands: 8.9.2 is 8902.
    """
    match = re.match(r"(\d{1,2})\.(\d{1,2})(?:\.(\d{1,2}))?(?!\d)", named or "")
    if match is not None:
        return _counted(int(match[1]), int(match[2]), int(match[3] or 0))
    stack = stack_of(torch)
    if stack is None:
        return None
    if stack.cudnn is None:
        return 8000 if stack.torch >= (1, 8) else 7600  # not recorded: older than any that answers
    major, minor, patch = (int(part) for part in stack.cudnn.split(".")[:3])
    return _counted(major, minor, patch)


TENSORFLOW_CUDNN: tuple[tuple[Version, str], ...] = (
    ((1, 13), "7.4.0"),
    ((2, 1), "7.6.0"),
    ((2, 4), "8.0.0"),
    ((2, 5), "8.1.0"),
    ((2, 12), "8.6.0"),
    ((2, 14), "8.7.0"),
    ((2, 15), "8.9.0"),
    ((2, 18), "9.3.0"),
)
"""First release of TensorFlow with each cuDNN. Source: tensorflow/docs site/en/install/source.md,
tested build configurations of 1.0 to 2.18 (a copy of the time of 2.18); the metadata of 2.21 still
ask for 9.3 or later. A newer cuDNN of the same major number may be installed."""


def tensorflow_cudnn_version(version: str, named: str | None = None) -> int | None:
    """Return the cuDNN a TensorFlow job runs on, the one it has *named* or its release's."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if named is not None:
        return cudnn_version(None, named)
    if match is None:
        return None
    release = (int(match[1]), int(match[2]))
    rows = [cudnn for since, cudnn in TENSORFLOW_CUDNN if since <= release]
    return cudnn_version(None, rows[-1]) if rows else 7000


def cudnn_of(framework: str, version: str | None, named: str | None = None) -> int | None:
    """Return the cuDNN a job of *framework* runs on, None if it is not known."""
    if framework == "tensorflow":
        return tensorflow_cudnn_version(version or "", named)
    return cudnn_version(version, named)


def _counted(major: int, minor: int, patch: int) -> int:
    return major * (10000 if major >= 9 else 1000) + minor * 100 + patch


def cuda_of_tag(version: str) -> Version | None:
    """Return the CUDA version of a build tag: `+cu121` is 12.1, `+cu92` is 9.2."""
    match = re.search(r"\+cu(\d{2,3})(?!\d)", version)
    if match is None:
        return None
    return int(match[1][:-1]), int(match[1][-1])
