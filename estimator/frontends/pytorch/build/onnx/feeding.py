"""What a graph is fed: its inputs, with the sizes of the job where it leaves them open.

    JobSpec, Graph -> shapes, a batch

The first size of the first input is the batch. A graph that was exported for one batch is run with
the job's. Other open sizes are taken of the spec: of images (rank four and more), the length of
whole numbers, or `input.shape`, which says all sizes of the first input.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from estimator.errors import Problem, SpecError
from estimator.frontends.pytorch.build.job import stand_in
from estimator.frontends.pytorch.build.onnx.call import Settings
from estimator.frontends.pytorch.build.onnx.graph import Graph, Value
from estimator.spec import JobSpec

MAX_SIZE = 1 << 24
_CHANNELS = (1, 3, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """Shapes and types of the inputs."""

    shapes: tuple[tuple[bool, tuple[int, ...]], ...]
    """Of each input: whether its first size is the batch, and the other sizes (else all)."""
    dtypes: tuple[torch.dtype, ...]
    exported_batch: int
    """The batch written into the graph, 0 if it is open."""

    @classmethod
    def of(cls, spec: JobSpec, graph: Graph, settings: Settings) -> Feed:
        """Return what *graph* is fed in the job *spec*.

        Raises:
            SpecError: naming every size that nobody told, or that the graph does not have.
        """
        first = graph.inputs[0].shape
        batch: int | str | None = first[0] if first else None
        known: dict[str, int] = {}
        problems: list[Problem] = []
        shapes = []
        for index, value in enumerate(graph.inputs):
            starts = bool(value.shape) and value.shape[0] == batch
            own = value.shape[1:] if starts else value.shape
            told = _told(spec, value, own, is_first=index == 0)
            shapes.append((starts, _sized(value, own, told, known, problems)))
        if problems:
            raise SpecError(problems)
        return cls(
            shapes=tuple(shapes),
            dtypes=tuple(settings.type_of(value.dtype) for value in graph.inputs),
            exported_batch=batch if isinstance(batch, int) else 0,
        )

    def inputs(self, batch: int) -> list[torch.Tensor]:
        """Return stand-ins for a batch of *batch* samples."""
        return [
            stand_in(*((batch,) if starts else ()), *shape, dtype=dtype)
            for (starts, shape), dtype in zip(self.shapes, self.dtypes, strict=True)
        ]


def _told(
    spec: JobSpec, value: Value, own: tuple[int | str, ...], *, is_first: bool
) -> tuple[int, ...]:
    """Return the sizes that *spec* has for an input, empty if it has none."""
    size = spec.input
    if size.shape is not None and is_first:
        return size.shape
    if size.image_size is not None and len(own) == 3 and "float" in value.dtype:
        channels, height, width = size.image_size
        is_last = own[-1] in _CHANNELS and own[0] not in _CHANNELS
        return (height, width, channels) if is_last else size.image_size
    if size.sequence_length is not None and len(own) == 1 and "int" in value.dtype:
        return (size.sequence_length,)
    return ()


def _sized(
    value: Value,
    own: tuple[int | str, ...],
    told: tuple[int, ...],
    known: dict[str, int],
    problems: list[Problem],
) -> tuple[int, ...]:
    """Return *own* with numbers for open sizes; note what is missing or contradicts."""
    if told and len(told) != len(own):
        message = f"{list(told)} are not the {len(own)} sizes of the graph's '{value.name:.80}'"
        problems.append(Problem(path="input.shape", message=message))
        return (1,) * len(own)
    sizes = []
    for index, size in enumerate(own):
        wanted = told[index] if told else None
        if isinstance(size, int):
            if wanted not in (None, size):
                message = (
                    f"{wanted} is not {size}, which the graph has for axis {index + 1} of "
                    f"'{value.name:.80}'"
                )
                problems.append(Problem(path=_key(value, own), message=message))
            sizes.append(min(size, MAX_SIZE))
            continue
        found = known.get(size) if size and wanted is None else wanted
        if found is None:
            message = (
                f"missing; the graph leaves '{size:.80}' open, axis {index + 1} of "
                f"'{value.name:.80}'"
            )
            problems.append(Problem(path=_key(value, own), message=message))
            found = 1
        if size:
            known.setdefault(size, found)
        sizes.append(found)
    return tuple(sizes)


def _key(value: Value, own: tuple[int | str, ...]) -> str:
    """Return the key of a spec that says such sizes."""
    if len(own) == 1 and "int" in value.dtype:
        return "input.sequenceLength"
    return "input.imageSize" if len(own) == 3 and "float" in value.dtype else "input.shape"
