"""What one rank computes, as a job of its own.

    JobSpec, Position -> JobSpec without parallelism

* Data parallel: the same; `ddp` stays, its buckets are the frontend's.
* Tensor parallel: heads, key-value heads and the width between are divided; the hidden width, norms
  and the residual stream stay whole. A vocabulary that divides is divided too (parallel loss).
* Pipeline: the stage's layers; the embedding on the first, head and loss on the last. How many
  micro-batches a stage holds is written into the trace (`flights.py`).
* Context parallel: its piece of the sequence.
* Expert parallel: its experts; tokens are taken as evenly spread, as a fixed capacity has them.

Source: NVIDIA/Megatron-LM@00caa53a `core/tensor_parallel/layers.py`, `core/pipeline_parallel/
schedules.py`; which keys carry the sizes: transformers 5.24.0 configurations.
Key-value heads that are fewer than the degree are copied, one a rank, as Megatron does. What ranks
exchange is written into the trace (`exchanged.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from estimator.catalog.models import known_model
from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.layering import LAYERS, config_of, key_of
from estimator.notes import UnknownCode
from estimator.sharding.groups import ranks_of
from estimator.sharding.shares import (
    has_masters,
    lets_go_of_outputs,
    shares_of,
    traced_precision,
)
from estimator.spec import Framework, JobSpec, Strategy, Task, parse_spec

HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KEYS = ("num_key_value_heads", "num_kv_heads")
WIDTHS = ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "moe_intermediate_size")
CHOSEN = ("num_experts_per_tok", "moe_topk")
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
VOCABULARY = "vocab_size"
WITH_HEAD_DIM = frozenset(
    {
        "cohere",
        "cohere2",
        "gemma",
        "gemma2",
        "gemma3_text",
        "glm",
        "glm4",
        "granite",
        "helium",
        "llama",
        "ministral",
        "mistral",
        "mixtral",
        "nemotron",
        "olmo2",
        "phi3",
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_moe",
        "seed_oss",
        "smollm3",
        "starcoder2",
    }
)
"""Model types whose heads have a size of their own, so that fewer heads are not wider ones."""
FRONTENDS_OWN = (Strategy.NONE, Strategy.DDP, Strategy.DP, Strategy.MIRRORED)
"""Strategies that are the frontend's: it deals with them, or says that it does not."""
HIDDEN = ("hidden_size", "n_embd", "d_model")


@dataclass(frozen=True, slots=True)
class Position:
    """Where in the job a rank is: only its stage of the pipeline makes it different."""

    rank: int = 0
    stage: int = 0


def positions_of(spec: JobSpec) -> tuple[Position, ...]:
    """Return one rank for each kind there is: the first, a middle and the last stage."""
    stages = spec.parallelism.pipeline_parallel
    if spec.framework is not Framework.PYTORCH:
        return (Position(),)
    per_stage = max(1, ranks_of(spec.parallelism) // stages)
    kinds = sorted({0, 1, stages - 1} if stages > 2 else {0, stages - 1})
    return tuple(Position(rank=stage * per_stage, stage=stage) for stage in kinds)


def piece_of(spec: JobSpec, position: Position) -> JobSpec:
    """Return the job of the rank at *position*.

    Raises:
        SpecError: for degrees that do not divide what they are to divide.
        UnsupportedJobError: if the architecture is not known well enough to be divided.
    """
    parallel = spec.parallelism
    document = spec.document()
    changes: dict[str, Any] = {}
    precision = traced_precision(spec)
    training = dict(document.get("training", {}))
    if precision is not spec.training.precision:
        training["precision"] = precision.value
    if lets_go_of_outputs(spec):
        training["keepOutputs"] = False
    if has_masters(parallel):
        training.pop("masterWeights", None)  # the engine makes them, in parts
    if training != document.get("training", {}):
        changes["training"] = training
    if parallel.context_parallel > 1:
        changes["input"] = _shorter(spec, document)
    if max(parallel.tensor_parallel, parallel.pipeline_parallel, parallel.expert_parallel) > 1:
        changes["model"] = _divided(spec, document, position)
    if parallel.strategy in FRONTENDS_OWN and not changes:
        return spec
    if "parallelism" in document:
        changes["parallelism"] = _own(document["parallelism"], parallel.strategy)
    return parse_spec({**document, **changes})


def _own(document: Mapping[str, Any], strategy: Strategy) -> dict[str, Any]:
    """Return what of the parallel job the frontend itself deals with, or refuses by name."""
    # Whose FSDP it is says what of the step its trainer compiles.
    kept = ["interconnect", "deviceMap", "implementation"]
    if strategy in FRONTENDS_OWN:
        kept += ["strategy", "dataParallel", "bucketBytes", "gradientAsBucketView"]
    return {key: document[key] for key in kept if key in document}


def _shorter(spec: JobSpec, document: Mapping[str, Any]) -> dict[str, Any]:
    degree, length = spec.parallelism.context_parallel, spec.input.sequence_length
    if length is None or length % degree:
        message = f"{degree}: does not divide input.sequenceLength ({length})"
        raise SpecError([Problem(path="parallelism.contextParallel", message=message)])
    return {**document["input"], "sequenceLength": length // degree}


def _divided(spec: JobSpec, document: Mapping[str, Any], position: Position) -> dict[str, Any]:
    """Return the part `model` with the sizes of one rank."""
    model = dict(document["model"])
    known = known_model(spec.model.name) if not spec.model.config else None
    config = config_of(spec)
    if key_of(config, LAYERS) is None or key_of(config, HEADS) is None:
        raise UnsupportedJobError(
            "parallelism: tensor, pipeline and expert parallelism are modelled for "
            "transformers whose configuration is known",
            code=UnknownCode.PARALLELISM,
            path="parallelism",
        )
    parallel = spec.parallelism
    if parallel.expert_parallel > 1 and shares_of(spec) is not None:
        raise UnsupportedJobError(
            "parallelism.expertParallel: experts whose state is shared by fewer ranks than the "
            "rest are not modelled",
            code=UnknownCode.PARALLELISM,
            path="parallelism.expertParallel",
            hint="estimate with expertParallel 1: the state of all experts is then shared by all",
        )
    problems = [
        *_by_tensor(config, parallel.tensor_parallel),
        *_by_stage(config, parallel.pipeline_parallel, position.stage),
        *_by_expert(config, parallel.expert_parallel),
    ]
    if problems:
        raise SpecError(problems)
    if known is not None and known.task in set(Task):
        model.setdefault("task", known.task)
    if position.stage < parallel.pipeline_parallel - 1:
        model["task"] = Task.FEATURE_EXTRACTION.value
        config.pop("architectures", None)
    return {**model, "config": config}


def _by_tensor(config: dict[str, Any], degree: int) -> list[Problem]:
    """Divide heads and widths in place; return what does not divide."""
    if degree == 1:
        return []
    if config.get("model_type") not in WITH_HEAD_DIM:
        raise UnsupportedJobError(
            f"parallelism.tensorParallel: heads of '{config.get('model_type')}' models are not "
            "divided yet",
            code=UnknownCode.PARALLELISM,
            path="parallelism.tensorParallel",
        )
    heads, hidden = key_of(config, HEADS), key_of(config, HIDDEN)
    assert heads is not None
    problems = _undividable(config, heads)
    if problems:
        return problems
    if hidden is not None:
        config.setdefault("head_dim", config[hidden] // config[heads])
    for key in (heads, *(each for each in WIDTHS if config.get(each))):
        if config[key] % degree:
            message = f"{degree}: does not divide model.config.{key} ({config[key]})"
            problems.append(Problem(path="parallelism.tensorParallel", message=message))
        config[key] = max(1, config[key] // degree)
    for key in KEYS:
        if config.get(key):
            config[key] = max(1, config[key] // degree)
    if config.get(VOCABULARY, 1) % degree == 0 and VOCABULARY in config:
        config[VOCABULARY] //= degree
    return problems


def _undividable(config: Mapping[str, Any], heads: str) -> list[Problem]:
    """Return what is to be divided and is no number of anything."""
    problems = []
    for key in (heads, *WIDTHS, *KEYS, VOCABULARY):
        value = config.get(key, 1)
        if value is None and key not in (heads, VOCABULARY):
            continue  # the library has a number of its own for it
        if type(value) is not int or value < 1:
            message = f"{value!r:.40} is not accepted: a whole number of at least 1"
            problems.append(Problem(path=f"model.config.{key}", message=message))
        elif key in KEYS and not problems and config[heads] % value:
            message = f"{value}: a divisor of {heads} ({config[heads]}) is accepted"
            problems.append(Problem(path=f"model.config.{key}", message=message))
    return problems


def _by_stage(config: dict[str, Any], stages: int, stage: int) -> list[Problem]:
    """Leave the layers of one stage in place; return what does not divide."""
    if stages == 1:
        return []
    key = key_of(config, LAYERS)
    assert key is not None
    if config[key] < stages:
        message = f"{stages}: more stages than model.config.{key} ({config[key]})"
        return [Problem(path="parallelism.pipelineParallel", message=message)]
    config[key] = -(-config[key] // stages) if stage == 0 else config[key] // stages
    if stage == stages - 1:
        config["tie_word_embeddings"] = True  # the head alone: it has no embedding of its own
    elif stage > 0:
        config[VOCABULARY] = 1
    return []


def _by_expert(config: dict[str, Any], degree: int) -> list[Problem]:
    """Leave the experts of one rank in place; return what does not divide."""
    if degree == 1:
        return []
    key = key_of(config, EXPERTS)
    if key is None or config[key] % degree:
        message = f"{degree}: does not divide the experts of the model"
        return [Problem(path="parallelism.expertParallel", message=message)]
    config[key] //= degree
    chosen = key_of(config, CHOSEN)
    if chosen is not None and config[chosen] > config[key]:
        raise UnsupportedJobError(
            f"parallelism.expertParallel: {config[key]} experts on a rank and {config[chosen]} for "
            "each token: the rows of a rank are not modelled",
            code=UnknownCode.PARALLELISM,
            path="parallelism.expertParallel",
            hint="estimate with a smaller expertParallel: a rank of it needs more",
        )
    return []
