"""What a Trace file holds, as JSON (contract: docs/contracts.md, section 1).

    JSON types -> TraceDocument, every value within its bounds

Columns are arrays of whole numbers, so that gzip finds what repeats from layer to layer. What the
numbers refer to is checked by `columns.py`. Lists stop at their first mistake: a hostile file
cannot make a million of them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec.vocabulary import Elements, Flag, NBytes, Part, Word
from estimator.trace import MAX_STREAM, EventKind, Phase, Role

MAX_CONTENT = 900 << 10
"""Of the file, so that a ConfigMap of 1 MiB holds it."""
MAX_DOCUMENT = 12 << 20
"""Of the JSON in it. A ResNet-50 was measured to take 0.1 MB, a decoder of 126 layers 1.6 MB."""
MAX_EVENTS = 2_000_000
MAX_TENSORS = 1_000_000
MAX_PLACES = 200_000
MAX_KERNELS = 20_000
MAX_STEP = 1_000_000
MAX_OPERANDS = 64
MAX_NOTES = 256
MAX_ELEMENTS = 1 << 40
"""Of one operand of a kernel."""

Text = Annotated[str, Field(strict=True, max_length=2048)]
Offset = Annotated[int, Field(strict=True, ge=-MAX_EVENTS, le=MAX_EVENTS)]
Number = Annotated[int, Field(strict=True, ge=-MAX_ELEMENTS, le=MAX_ELEMENTS)]
Size = Annotated[int, Field(strict=True, ge=0, le=MAX_ELEMENTS)]
Value = (
    Flag
    | Number
    | Annotated[float, Field(strict=True, allow_inf_nan=False)]
    | Text
    | Annotated[list[Number], Field(fail_fast=True, max_length=16)]
)


class TraitsPart(Part):
    """What of the card the frontend knew: `estimator.traits.Traits`."""

    flash_attention: Flag
    efficient_attention: Flag
    native_bf16: Flag
    xla_target: Word | None = None
    xla_memory_bytes: NBytes | None = None


class TensorsPart(Part):
    """One entry a tensor, in the order of their allocation."""

    sizes: Annotated[list[NBytes], Field(fail_fast=True, max_length=MAX_TENSORS)]
    roles: Annotated[
        list[Annotated[int, Field(strict=True, ge=0, lt=len(Role))]],
        Field(fail_fast=True, max_length=MAX_TENSORS),
    ]
    streams: Annotated[
        list[Annotated[int, Field(strict=True, ge=0, le=MAX_STREAM)]],
        Field(fail_fast=True, max_length=MAX_TENSORS),
    ]


class EventsPart(Part):
    """One entry an event, but for `ids`."""

    kinds: Annotated[
        list[Annotated[int, Field(strict=True, ge=0, lt=len(EventKind))]],
        Field(fail_fast=True, max_length=MAX_EVENTS),
    ]
    ids: Annotated[list[Offset], Field(fail_fast=True, max_length=MAX_EVENTS)]
    """One entry for each event that is no allocation. A tensor: how long ago it was allocated, 0
    being the newest. A kernel: its index less that of the kernel before. Else the id itself."""
    places: Annotated[list[Offset], Field(fail_fast=True, max_length=MAX_EVENTS)]
    """Index into `placeTable`, less that of the event before."""


class PlacePart(Part):
    """`estimator.trace.Place`; `operator` and `module` are indices into `words`."""

    step: Annotated[int, Field(strict=True, ge=0, le=MAX_STEP)]
    phase: Phase
    operator: Annotated[int, Field(strict=True, ge=0)]
    module: Annotated[int, Field(strict=True, ge=0)]


class OperandPart(Part):
    """`estimator.trace.TensorFacts`."""

    shape: Annotated[list[Size], Field(fail_fast=True, max_length=16)]
    dtype: Word
    channels_last: Flag = False


class KernelPart(Part):
    """`estimator.trace.Kernel`."""

    operator: Text
    operands: Annotated[list[OperandPart], Field(fail_fast=True, max_length=MAX_OPERANDS)]
    attributes: Annotated[dict[Word, Value], Field(max_length=32)] = Field(default_factory=dict)


class AssumptionPart(Part):
    code: AssumptionCode
    path: Text
    value: Text
    reason: Text


class UnknownPart(Part):
    code: UnknownCode
    path: Text
    reason: Text


class TracePart(Part):
    """`estimator.trace.Trace`; its framework is the spec's."""

    framework_version: Word
    parameters: Elements
    tensors: TensorsPart
    events: EventsPart
    words: Annotated[list[Text], Field(fail_fast=True, max_length=MAX_PLACES)]
    place_table: Annotated[list[PlacePart], Field(fail_fast=True, max_length=MAX_PLACES)]
    kernels: Annotated[list[KernelPart], Field(fail_fast=True, max_length=MAX_KERNELS)]
    assumptions: Annotated[list[AssumptionPart], Field(fail_fast=True, max_length=MAX_NOTES)]
    unknowns: Annotated[list[UnknownPart], Field(fail_fast=True, max_length=MAX_NOTES)]
    warnings: Annotated[list[Text], Field(fail_fast=True, max_length=MAX_NOTES)]
    at_most: Text | None = None
    """Sizes were taken at the most the model may take; what of."""


class TraceDocument(Part):
    """A Trace file."""

    api_version: Literal["vramgate.dev/v1"]
    kind: Literal["Trace"]
    spec: dict[str, Any]
    """A JobSpec, read by `parse_spec`."""
    traits: TraitsPart
    trace: TracePart
