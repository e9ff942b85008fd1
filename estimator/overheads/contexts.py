"""Memory of a bare CUDA context, and of the libraries a training step loads, by architecture.

    compute capability, CUDA version -> context, libraries

Since CUDA 11.7 modules load lazily: the context is small and kernels come as they are used.
Before, every kernel of torch, cuBLAS and cuDNN for the architecture was loaded at once.

Each row names its source; all are published readings, none ours. `assumed` marks a row with no
reading of its own, filled from its neighbours. Ends of a range without a source are assumed too.
Not modelled: the driver version, MPS, MIG, several contexts a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from estimator.device import ComputeCapability
from estimator.overheads.ranges import Range, mib
from estimator.overheads.stacks import Version


class Architecture(StrEnum):
    """A generation of cards whose kernels are about equally large."""

    KEPLER = "kepler"
    PASCAL = "pascal"
    VOLTA = "volta"
    TURING = "turing"
    AMPERE_SERVER = "ampere-server"
    AMPERE = "ampere"
    ADA = "ada"
    HOPPER = "hopper"
    BLACKWELL = "blackwell"


class Loading(StrEnum):
    """How CUDA modules reach the card."""

    EAGER_10 = "eager-10"
    """CUDA 10 and older."""
    EAGER_11 = "eager-11"
    """CUDA 11.0-11.6: many more kernels in the wheels."""
    LAZY = "lazy"
    """CUDA 11.7 and newer, unless CUDA_MODULE_LOADING=EAGER."""


LAZY_SINCE: Version = (11, 7)


def architecture_of(capability: ComputeCapability) -> Architecture | None:
    """Return the architecture of a compute capability, None for one we have no figures for."""
    if capability == (8, 0):
        return Architecture.AMPERE_SERVER
    if capability == (8, 9):
        return Architecture.ADA
    if capability == (7, 5):
        return Architecture.TURING
    return BY_MAJOR.get(capability[0])


BY_MAJOR: Mapping[int, Architecture] = {
    3: Architecture.KEPLER,
    5: Architecture.PASCAL,
    6: Architecture.PASCAL,
    7: Architecture.VOLTA,
    8: Architecture.AMPERE,
    9: Architecture.HOPPER,
    10: Architecture.BLACKWELL,
    11: Architecture.BLACKWELL,
    12: Architecture.BLACKWELL,
}


def loading_of(cuda: Version, environment: Mapping[str, str]) -> Loading:
    """Return how modules are loaded under *cuda* with the job's *environment*."""
    if cuda < (11, 0):
        return Loading.EAGER_10
    if cuda < LAZY_SINCE or environment.get("CUDA_MODULE_LOADING", "").upper() == "EAGER":
        return Loading.EAGER_11
    return Loading.LAZY


CONTEXTS: Mapping[tuple[Loading, Architecture], Range] = {
    # K40c, torch 1.3.0, CUDA 10.1: 200-700, differs by machine (pytorch/pytorch#28113)
    (Loading.EAGER_10, Architecture.KEPLER): mib(200, 450, 700),
    # assumed: between Kepler and Volta
    (Loading.EAGER_10, Architecture.PASCAL): mib(200, 500, 900),
    # V100, torch 1.1: 300-400 (pytorch/pytorch#20532); Titan V, torch 1.3: 1,007 less a 2 MiB
    # segment, of which 319 without torch's kernels (pytorch/pytorch#28394)
    (Loading.EAGER_10, Architecture.VOLTA): mib(300, 700, 1005),
    # RTX 2080 Ti, torch 1.6, CUDA 10.1: 1,035 - 158 = 877 (pytorch/pytorch#49877)
    # TITAN RTX, torch 1.4: 707-803 with libraries, readings less replayed reserved
    # (all twelve hf-infer cases, fitted)
    (Loading.EAGER_10, Architecture.TURING): mib(600, 760, 1100),
    # Four rows of CUDA 11.1, torch 1.8.1, fitted on every ninth schedtune case (reading less
    # replayed reserved, libraries included): K80 410-480, V100 1,130-1,280,
    # RTX 2070 Super 1,090-1,150, RTX 3070 and 3090 1,350
    (Loading.EAGER_11, Architecture.KEPLER): mib(200, 390, 900),
    # assumed: between Kepler and Turing
    (Loading.EAGER_11, Architecture.PASCAL): mib(400, 700, 1200),
    # V100-SXM2, torch ~1.10, CUDA 11.2: 1,343
    # (huggingface/transformers@0016acf7 perf_train_gpu_one.mdx)
    (Loading.EAGER_11, Architecture.VOLTA): mib(1000, 1200, 1500),
    # "> 1,000" by a maintainer (pytorch/pytorch#107667)
    (Loading.EAGER_11, Architecture.TURING): mib(850, 1050, 1486),
    # assumed: as Ampere
    (Loading.EAGER_11, Architecture.AMPERE_SERVER): mib(950, 1280, 1500),
    # RTX 3090: 1,486 with torch 1.7.1 and CUDA 11.0 (pytorch/pytorch#49877), 1,001 with
    # torch ~1.8 and CUDA 11.1, total used (pytorch/pytorch#54564)
    (Loading.EAGER_11, Architecture.AMPERE): mib(950, 1300, 1486),
    # assumed: cards newer than the toolkit run, if at all, on Ampere's kernels
    (Loading.EAGER_11, Architecture.ADA): mib(950, 1300, 1500),
    (Loading.EAGER_11, Architecture.HOPPER): mib(950, 1300, 1600),
    (Loading.EAGER_11, Architecture.BLACKWELL): mib(950, 1300, 1600),
    # lazy: 300-400 by maintainers (pytorch/pytorch#107667, #109888)
    (Loading.LAZY, Architecture.KEPLER): mib(150, 250, 400),
    (Loading.LAZY, Architecture.PASCAL): mib(150, 250, 400),
    # V100, torch 2.1: 366 with libraries, in an OOM text (meta-llama/llama#918)
    (Loading.LAZY, Architecture.VOLTA): mib(250, 310, 400),
    (Loading.LAZY, Architecture.TURING): mib(150, 250, 400),
    # A100: 1,268 used after the first allocation, less 870 reserved by the driver = 398
    # (agilerl-arena 1.29.0 specs.py, formulas.py)
    (Loading.LAZY, Architecture.AMPERE_SERVER): mib(300, 398, 520),
    # RTX 3090/4090: 205 non-torch (vllm-project/vllm issues); A10G 358 with libraries
    (Loading.LAZY, Architecture.AMPERE): mib(140, 205, 358),
    # RTX 6000 Ada, torch 2.10+cu130: 426, nothing allocated (unslothai/unsloth-zoo#1053);
    # L4: 694 used after the first allocation, driver reservation included (agilerl-arena)
    (Loading.LAZY, Architecture.ADA): mib(150, 300, 426),
    # H200, torch 2.7.1+cu128: ~520 an idle context (clemsgrs/slide2vec#326)
    (Loading.LAZY, Architecture.HOPPER): mib(300, 450, 520),
    (Loading.LAZY, Architecture.BLACKWELL): mib(300, 450, 700),
}
"""Bare context: what NVML shows for a process that has allocated one tensor, less its segment."""

EAGER_LIBRARIES = mib(0, 50, 250)
"""Eager contexts hold the kernels already; handles and cuDNN's own tables remain (assumed)."""

LIBRARIES: Mapping[Architecture, Range] = {
    # V100, torch 2.1: context and libraries together 366 (meta-llama/llama#918)
    Architecture.VOLTA: mib(0, 56, 300),
    # Three sources, far apart. Context and libraries together: 522 in an OOM text
    # (Lightning-AI/litgpt@26857050 tutorials/oom.md); 398 + 436 + 50 = 884 calibrated
    # (agilerl-arena 1.29.0); 1,443 floor of a training process in nvidia-smi of 2024
    # (itu-rad/GPUMemNet@f01eb059), where the card's figure may or may not count the driver's
    # reservation of 453-625: 800-1,420 after the allocator's 22.
    # Expected: fitted on every third mlp-a100 case (17 perceptrons, torch 2.4.1+cu121): reading
    # less replayed reserved less a reservation of 625 is 802-818 in 16 of them, median 804.
    Architecture.AMPERE_SERVER: mib(50, 406, 900),
    # A10G 358, RTX 4090 522 together with the context, in OOM texts
    # (meta-llama/llama-cookbook#898, lora-fast#1)
    Architecture.AMPERE: mib(0, 60, 436),
    Architecture.ADA: mib(0, 160, 436),
    # H100, vLLM: 164 more during a profile run (vllm-project/vllm#10511); upper end as A100
    Architecture.HOPPER: mib(0, 250, 900),
    # assumed
    Architecture.KEPLER: mib(0, 60, 300),
    Architecture.PASCAL: mib(0, 60, 300),
    Architecture.TURING: mib(0, 100, 436),
    Architecture.BLACKWELL: mib(0, 250, 900),
}
"""cuBLAS and the kernels a training step loads lazily, beyond the bare context; no cuDNN."""

CUDNN = mib(0, 262, 500)
"""What cuDNN adds where modules load lazily, to a process that calls it.

Fitted on timm-a100 cases that convolve next to nothing (vision transformers, mobile networks at
batch 8-16; torch 2.4.1+cu121, cuDNN 9.1): their readings lie 248-292 MiB above the perceptrons'
of the same machine. Other cards and versions assumed alike.
"""

OTHER_FRAMEWORKS: Mapping[str, tuple[Range, Range]] = {
    # "such pools plus 200-300 MiB of context" (theqihao/tfmodels@0d98e2f5, derived); the upper
    # end is the TITAN RTX reading of 1,330, first regions included
    # (huggingface/transformers@05c408e3 benchmarks.md)
    "tensorflow": (mib(200, 300, 700), mib(0, 100, 600)),
    # assumed: eager CUDA 8-10 builds
    "mxnet": (mib(150, 300, 700), mib(0, 60, 300)),
    # assumed: as PyTorch with lazy loading
    "jax": (mib(200, 350, 520), mib(0, 150, 600)),
}
"""Context and libraries of the other frameworks, over all cards."""
