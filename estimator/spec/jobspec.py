"""JobSpec: what one rank of a job needs the estimator to know.

    a document (dict) -> JobSpec

`parse_spec` is the only door: it reports every problem at once.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import reduce
from typing import Any, Literal

import orjson
from pydantic import Field, ValidationError, model_validator

from estimator.errors import Problem, SpecError
from estimator.spec.model import Adapter, Input, Model, Quantization
from estimator.spec.problems import path_text, problems_of
from estimator.spec.training import Parallelism, Runtime, Training
from estimator.spec.vocabulary import Framework, JobPhase, Objective, Part, Word

API_VERSION = "vramgate.dev/v1"
MAX_DEPTH = 64
MAX_VALUES = 200_000
MAX_TEXT = 28 << 20
"""Characters of all texts together: a step in a file of 16 MiB, as base64, has 22 Mi, and a worker
is asked in at most 32 MiB."""


class JobSpec(Part):
    """One rank of a training or inference job (contract: docs/contracts.md)."""

    api_version: Literal["vramgate.dev/v1"] = "vramgate.dev/v1"
    kind: Literal["JobSpec"] = "JobSpec"
    framework: Framework
    framework_version: Word | None = None
    """Picks context and cuDNN tables. Absent: the newest the catalog knows, and said so."""
    phase: JobPhase = JobPhase.TRAIN
    objective: Objective = Objective.SUPERVISED
    model: Model
    input: Input
    training: Training = Field(default_factory=Training)
    adapter: Adapter | None = None
    quantization: Quantization | None = None
    parallelism: Parallelism = Field(default_factory=Parallelism)
    runtime: Runtime = Field(default_factory=Runtime)

    @model_validator(mode="after")
    def _degrees_match(self) -> JobSpec:
        parallel = self.parallelism
        degrees = (
            parallel.data_parallel,
            parallel.tensor_parallel,
            parallel.pipeline_parallel,
            parallel.context_parallel,
        )
        product = reduce(lambda left, right: left * right, degrees)
        if parallel.world_size is not None and parallel.world_size != product:
            raise ValueError(
                f"parallelism.worldSize: {parallel.world_size} is not the product of "
                f"dataParallel, tensorParallel, pipelineParallel and contextParallel ({product})"
            )
        if parallel.data_parallel % parallel.expert_parallel:
            raise ValueError(
                f"parallelism.expertParallel: {parallel.expert_parallel} does not divide "
                f"dataParallel ({parallel.data_parallel})"
            )
        replicas, group = parallel.data_parallel, parallel.shard_group
        if group is not None and "data_parallel" in parallel.model_fields_set and replicas % group:
            raise ValueError(
                f"parallelism.shardGroup: {group} does not divide dataParallel ({replicas})"
            )
        return self

    def document(self) -> dict[str, Any]:
        """Return the spec as written: JSON types, only the keys that were given."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def normalised(self) -> dict[str, Any]:
        """Return the spec with every default filled in."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def identity(self) -> dict[str, Any]:
        """Return what tells this job from every other: the normalised spec, as a rule.

        A default that is stated where a framework or trainer would choose otherwise is another job
        than one that leaves it to them: what is so stated is added under `stated`.
        """
        document = self.normalised()
        stated = [
            f"{part}.{name}"
            for part, names in STATED.items()
            for name in names
            if _is_stated_default(getattr(self, part), name)
        ]
        return {**document, "stated": stated} if stated else document

    def digest(self) -> str:
        """Return the sha256 of the canonical JSON of `identity`."""
        return digest_of(self.identity())


STATED: Mapping[str, tuple[str, ...]] = {
    "training": ("compile", "keep_outputs", "optimizer", "use_cache"),
    "quantization": ("skip_modules",),
    "adapter": ("rank",),
    "parallelism": ("context_parallel", "data_parallel", "shard_group", "zero"),
}
"""Part -> keys of which it matters whether they were stated, whatever their value."""


def _is_stated_default(part: Part | None, name: str) -> bool:
    """Return whether *name* was stated in *part*, with the value that it has anyway."""
    if part is None or name not in part.model_fields_set:
        return False
    default = type(part).model_fields[name].get_default(call_default_factory=True)
    return bool(getattr(part, name) == default)


def digest_of(document: object) -> str:
    """Return `sha256:…` of the canonical JSON (sorted keys, no spaces) of *document*."""
    canonical = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    return "sha256:" + hashlib.sha256(canonical).hexdigest()


def parse_spec(document: object) -> JobSpec:
    """Return the JobSpec of *document*, a value of JSON types.

    Raises:
        SpecError: with every problem, each with its path, the value seen and what is accepted.
    """
    if not isinstance(document, Mapping):
        raise SpecError([Problem(path="", message="a JobSpec is a mapping of keys to values")])
    _check_values(document)
    try:
        return JobSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError(problems_of(error)) from error


def _check_values(document: object) -> None:
    """Refuse what nests or repeats without end, and values that JSON does not have.

    Raises:
        SpecError: naming the first such value.
    """
    stack: list[tuple[object, tuple[str | int, ...]]] = [(document, ())]
    seen = length = 0
    while stack:
        value, path = stack.pop()
        seen += 1
        if len(path) > MAX_DEPTH or seen > MAX_VALUES:
            message = f"nested deeper than {MAX_DEPTH} or longer than {MAX_VALUES} values"
            raise SpecError([Problem(path="", message=message)])
        length += len(value) if isinstance(value, str) else 0
        if length > MAX_TEXT:
            message = f"texts of more than {MAX_TEXT} characters together"
            raise SpecError([Problem(path=path_text(path), message=message)])
        if isinstance(value, Mapping):
            if not all(isinstance(key, str) for key in value):
                raise SpecError([Problem(path=path_text(path), message="a key is not a text")])
            stack.extend((item, (*path, key)) for key, item in value.items())
        elif isinstance(value, list | tuple):
            stack.extend((item, (*path, index)) for index, item in enumerate(value))
        elif not _is_plain(value):
            message = "not a text, a flag, or a finite number of at most 64 bits"
            raise SpecError([Problem(path=path_text(path), message=message)])


def _is_plain(value: object) -> bool:
    if isinstance(value, int):
        return abs(value) < 1 << 63
    return (
        value is None
        or isinstance(value, str)
        or (isinstance(value, float) and math.isfinite(value))
    )
