"""How the model of a JobSpec is trained, over how many cards, and on what run time."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from estimator.spec.vocabulary import (
    Amount,
    CheckpointMode,
    Count,
    DeviceMap,
    Dotted,
    DType,
    Elements,
    Flag,
    Implementation,
    Interconnect,
    KernelSet,
    Length,
    LossKind,
    MemoryFormat,
    Name,
    NBytes,
    Offload,
    Part,
    Precision,
    Ratio,
    Schedule,
    Strategy,
    Word,
    Wrap,
    ZeroGradPosition,
)


class Optimizer(Part):
    """Whose states stay on the card. `name` is an open list, checked by the frontend."""

    name: Word = "adamw"
    foreach: Flag | None = None
    """Absent: the framework's own default on a GPU."""
    fused: Flag = False
    momentum: Ratio = 0.0
    nesterov: Flag = False
    weight_decay: Ratio | None = None
    """Absent: the optimizer's own default."""
    amsgrad: Flag = False
    centered: Flag = False
    bits: Literal[8, 16, 32] = 32
    paged: Flag = False
    in_backward: Flag = False


class GradientCheckpointing(Part):
    """Which activations are dropped and computed again. A plain word is `{mode: word}`."""

    mode: CheckpointMode = CheckpointMode.NONE
    every: Count = 1
    reentrant: Flag | None = None
    policy: Word | None = None


class Compile(Part):
    """Whether a compiler fuses the step. `false` and `true` are `{enabled: …}`."""

    enabled: Flag = True
    mode: Word = "default"
    cuda_graphs: Flag = False

    @property
    def records_graphs(self) -> bool:
        """Return whether the step is recorded as CUDA graphs, which two of torch's modes do too."""
        return self.enabled and (
            self.cuda_graphs or self.mode in ("reduce-overhead", "max-autotune")
        )


class Float8(Part):
    recipe: Word = "tensorwise"
    all_gather: Flag = False


class ZeroGrad(Part):
    position: ZeroGradPosition = ZeroGradPosition.BEFORE_FORWARD
    set_to_none: Flag | None = None
    """Absent: as that framework version does."""


class EmptyCache(Part):
    every_steps: Amount = 0
    before_longest: Flag = False


class Evaluation(Part):
    """An evaluation with its own shapes between training steps."""

    batch_size: Count
    sequence_length: Length | None = None
    max_new_tokens: Amount = 0
    collect_logits: Flag = False


class Save(Part):
    full_state_dict: Flag = False


class Training(Part):
    """One optimizer step: precision, optimizer, loss and what is kept between steps."""

    precision: Precision = Precision.FP32
    """bf16/fp16: weights in it. amp-*: fp32 weights under autocast. tf32: fp32, TF32 matmuls."""
    master_weights: Flag = False
    float8: Float8 | None = None
    optimizer: Optimizer = Field(default_factory=Optimizer)
    gradient_accumulation_steps: Count = 1
    gradient_checkpointing: GradientCheckpointing = Field(default_factory=GradientCheckpointing)
    activation_offload: Flag = False
    zero_grad: ZeroGrad | None = None
    """Absent: as that framework version and trainer do."""
    keep_outputs: Flag = True
    """Outputs and loss stay alive into the next forward, as in the usual loop."""
    use_cache: Flag = True
    """The KV cache is made, and kept with the outputs, in training too: transformers' default."""
    output_dtype: DType | None = None
    empty_cache: EmptyCache = Field(default_factory=EmptyCache)
    clip_grad_norm: Flag = False
    ema: Flag = False
    label_smoothing: Ratio = 0.0
    loss: LossKind = LossKind.DEFAULT
    kernels: KernelSet = KernelSet.DEFAULT
    compile: Compile = Field(default_factory=lambda: Compile(enabled=False))
    evaluation: Evaluation | None = None
    save: Save = Field(default_factory=Save)

    @field_validator("gradient_checkpointing", mode="before")
    @classmethod
    def _word_is_mode(cls, value: object) -> object:
        return {"mode": value} if isinstance(value, str) else value

    @field_validator("compile", mode="before")
    @classmethod
    def _flag_is_enabled(cls, value: object) -> object:
        return {"enabled": value} if isinstance(value, bool) else value


class MixedPrecision(Part):
    param: DType = DType.BF16
    reduce: DType = DType.FP32


class Zero(Part):
    """DeepSpeed's bucket sizes, in elements.

    Only `reduce_bucket_elements` moves an estimate: `allgather_bucket_elements` cuts weights that
    are there anyway, and what stage 3 fetches ahead is a named unknown.
    """

    reduce_bucket_elements: Elements = 500_000_000
    allgather_bucket_elements: Elements = 500_000_000
    prefetch_elements: Elements = 50_000_000


class Parallelism(Part):
    """How the job is spread over ranks."""

    strategy: Strategy = Strategy.NONE
    implementation: Implementation | None = None
    world_size: Count | None = None
    data_parallel: Count = 1
    shard_group: Count | None = None
    tensor_parallel: Count = 1
    pipeline_parallel: Count = 1
    virtual_stages: Count = 1
    micro_batches: Count = 1
    schedule: Schedule = Schedule.ONE_F_ONE_B
    context_parallel: Count = 1
    expert_parallel: Count = 1
    sequence_parallel: Flag = False
    distributed_optimizer: Flag = False
    bucket_bytes: NBytes = 26_214_400
    gradient_as_bucket_view: Flag = False
    zero: Zero = Field(default_factory=Zero)
    wrap: Wrap = Wrap.LAYER
    reshard_after_forward: Flag = True
    mixed_precision: MixedPrecision | None = None
    offload: Offload = Offload.NONE
    device_map: DeviceMap = DeviceMap.NONE
    interconnect: Interconnect = Interconnect.NVLINK


class Runtime(Part):
    """Environment and library versions that move memory."""

    env: Annotated[dict[Name, Annotated[str, Field(max_length=4096)]], Field(max_length=256)] = (
        Field(default_factory=dict)
    )
    libraries: Annotated[dict[Name, Word], Field(max_length=64)] = Field(default_factory=dict)
    driver: Word | None = None
    cudnn: Dotted | None = None
    memory_format: MemoryFormat = MemoryFormat.CONTIGUOUS
    cudnn_benchmark: Flag = False
    cudnn_deterministic: Flag = False
    allow_growth: Flag = False
    allocator_cap_bytes: NBytes = 0
    data_loader_cuda_workers: Annotated[int, Field(strict=True, ge=0, le=1024)] = 0
    extra_bytes: NBytes = 0
