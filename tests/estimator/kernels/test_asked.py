"""Convolutions of a trace are asked of cuDNN all at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from estimator.catalog.stacks import cudnn_version
from estimator.cudnn import Answer, Card, Plan, Question
from estimator.device import ComputeCapability, Device
from estimator.kernels import Scratch, workspaces_of
from estimator.notes import Assumption, AssumptionCode
from estimator.trace import Kernel, TensorFacts, Trace, TraceBuilder

SHAPE = (8, 64, 56, 56)


def device(capability: ComputeCapability = (8, 0)) -> Device:
    """Return a card of this compute capability."""
    return Device(
        name="card",
        total_bytes=None,
        reservation_bytes=0,
        budget_bytes=None,
        compute_capability=capability,
    )


def convolution(operator: str = "aten.convolution", size: int = 3) -> Kernel:
    """Return a contiguous fp32 convolution."""
    return Kernel(
        operator=operator,
        operands=tuple(
            TensorFacts(shape=shape, dtype="float32")
            for shape in (SHAPE, (64, 64, size, size), SHAPE)
        ),
        attributes=(("padding", (size // 2, size // 2)),),
    )


def trace_of(*kernels: Kernel, version: str = "2.15.0") -> Trace:
    """Return a trace of these calls."""
    builder = TraceBuilder(framework="pytorch", framework_version=version)
    for kernel in kernels:
        builder.kernel(kernel)
    return builder.build()


class Library:
    """Answers every question with the same plans, or with nothing.

    Each of *versions* answers one question in turn; None has no answer.
    """

    def __init__(
        self,
        *workspaces: int,
        reason: str | None = None,
        versions: Sequence[int | None] = (92600,),
    ) -> None:
        self.reason = reason
        self.asked: list[tuple[Question, ...]] = []
        self.wanted: int | None = None
        self._plans = tuple(Plan(engine=1, notes=(), workspace=size) for size in workspaces)
        self._versions = versions

    def ask(
        self, questions: Sequence[Question], card: Card, *, wanted: int | None
    ) -> list[Answer | None]:
        """Return the plans for each question."""
        assert card.compute_capability == (8, 0)
        self.asked.append(tuple(questions))
        self.wanted = wanted
        turns = zip(questions, cycle(self._versions), strict=False)
        return [self._answer(version) for _, version in turns]

    def _answer(self, version: int | None) -> Answer | None:
        if version is None or not self._plans:
            return None
        return Answer(version=version, instant=self._plans, fallback=())


def scratch(trace: Trace, library: Library | None, card: Device | None = None) -> Scratch:
    """Return the scratch of the trace's first kernel."""
    card = card or device()
    found = workspaces_of(trace, card, library).scratch(trace.kernels[0], card)
    assert isinstance(found, Scratch)
    return found


def test_each_question_is_asked_once() -> None:
    """A forward and a backward of one shape are three questions, whoever calls them."""
    library = Library(5)
    backward = convolution("aten.convolution_backward")
    trace = trace_of(convolution(), backward, convolution(), backward)

    workspaces_of(trace, device(), library)

    ((first, second, third),) = library.asked
    assert [each.direction.value for each in (first, second, third)] == [
        "forward",
        "data",
        "weight",
    ]


def test_the_answer_is_what_a_call_takes() -> None:
    """The first plan of the library that answered, named in the assumption."""
    found = scratch(trace_of(convolution()), Library(5, 9))

    assert [block.nbytes for block in found.blocks] == [5]
    assert found.assumption is not None
    assert found.assumption.value == "cuDNN 9.26.0"
    assert "may bring" not in found.assumption.reason


def test_a_job_with_an_older_cudnn_says_that_another_was_asked() -> None:
    """torch 2.4 brings 9.1, which cannot be asked."""
    found = scratch(trace_of(convolution(), version="2.4.1+cu121"), Library(5))

    assert found.assumption is not None
    assert "an older one, which cannot be asked" in found.assumption.reason


def test_the_jobs_own_version_is_wanted() -> None:
    """torch 2.9 brings 9.10.2: its first plan is certain, and nothing more is said of versions."""
    library = Library(5, 3, versions=(91002,))
    found = scratch(trace_of(convolution(), version="2.9.1"), library)

    assert library.wanted == 91002
    assert [(block.least, block.nbytes) for block in found.blocks] == [(5, 5)]
    assert found.assumption is not None
    assert found.assumption.value == "cuDNN 9.10.2"
    assert found.assumption.reason == "cuDNN 9.10.2 was asked for each convolution's plans"


def test_another_version_than_the_jobs_is_not_certain() -> None:
    """9.26 answers for a job with 9.10.2: any of its plans may be the one that runs."""
    found = scratch(trace_of(convolution(), version="2.9.1"), Library(5, 3))

    assert [(block.least, block.nbytes) for block in found.blocks] == [(3, 5)]
    assert found.assumption is not None
    assert found.assumption.value == "cuDNN 9.26.0"
    assert found.assumption.reason.endswith("; the job's own (torch 2.9.1) is 9.10.2")


def test_answers_of_two_versions_are_both_named() -> None:
    """Forward and weight from a table, data from the live library; each counts for itself."""
    backward = convolution("aten.convolution_backward")
    library = Library(5, 3, versions=(91002, 92600))
    trace = trace_of(backward, convolution(), version="2.9.1")

    found = scratch(trace, library)

    assert [block.least for block in found.blocks] == [5, 3]
    assert found.assumption is not None
    assert found.assumption.value == "cuDNN 9.10.2 and 9.26.0"
    assert found.assumption.reason == (
        "cuDNN 9.10.2 was asked for the plans of 2 of 3 shapes, cuDNN 9.26.0 of 1"
        "; the job's own (torch 2.9.1) is 9.10.2"
    )


def test_shapes_without_an_answer_are_counted_with_the_reason() -> None:
    """One of three is in no table."""
    library = Library(5, versions=(91002, 91002, None), reason="no answer for 1 shape")
    backward = convolution("aten.convolution_backward")

    found = scratch(trace_of(convolution(), backward, version="2.9.1"), library)

    assert found.assumption is not None
    assert found.assumption.value == "cuDNN 9.10.2"
    assert found.assumption.reason == (
        "cuDNN 9.10.2 was asked for the plans of 2 of 3 shapes"
        "; 1 had no answer and are bounded by mechanism (no answer for 1 shape)"
    )


def test_without_an_answer_the_mechanism_bounds_the_call_and_says_why() -> None:
    """A library that died: input, output and weight copied, between nothing and that."""
    found = scratch(trace_of(convolution()), Library(reason="cuDNN's process ended"))

    assert [(block.least, block.nbytes > 0) for block in found.blocks] == [(0, True)]
    assert found.assumption is not None
    assert "cuDNN's process ended" in found.assumption.reason


def test_torch_before_2_0_is_not_asked_about() -> None:
    """Its interface to cuDNN knows algorithms: nothing is expected, Winograd's tiles at most."""
    library = Library(5)
    found = scratch(trace_of(convolution(), version="1.10.2+cu113"), library)

    assert library.asked == []
    (block,) = found.blocks
    tensors, weight = 2 * 8 * 64 * 56 * 56, 64 * 64 * 9
    assert (block.least, block.nbytes) == (0, 0)
    assert block.most == (tensors * 36 // 16 + weight * 36 // 9) * 4
    assert found.assumption is not None
    assert "older interface" in found.assumption.reason


def test_an_architecture_without_properties_is_bounded() -> None:
    """Pascal is in no support list."""
    library = Library(5)
    found = scratch(trace_of(convolution()), library, device((6, 1)))

    assert library.asked == []
    assert found.assumption is None or "not in the catalog" in found.assumption.reason


def test_a_trace_without_convolutions_asks_nothing() -> None:
    """Language models do not wait for cuDNN."""
    library = Library(5)

    workspaces_of(trace_of(), device(), library)

    assert library.asked == []


def test_versions_are_counted_as_cudnn_counts_them() -> None:
    """9.1.0 is 90100, 8.9.2 was 8902; an unrecorded one is older than any that answers."""
    assert cudnn_version("2.4.1+cu121") == 90100
    assert cudnn_version("2.1.0") == 8902
    assert cudnn_version("1.8.1+cu111") == 8000
    assert cudnn_version("nightly") is None


def test_a_cudnn_the_job_names_is_the_one_wanted() -> None:
    """`runtime.cudnn` beats what the release brings; a word that is no version does not."""
    assert cudnn_version("2.4.1+cu121", "9.10.2.21") == 91002
    assert cudnn_version("2.4.1+cu121", "system") == 90100
    assert cudnn_version(None, "8.9.2") == 8902


def test_a_version_nobody_stated_is_not_the_jobs_own() -> None:
    """An assumed newest release makes no plan certain: the low end is the smallest of all."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    builder.kernel(convolution())
    builder.assumptions.append(
        Assumption(
            code=AssumptionCode.FRAMEWORK_VERSION,
            path="frameworkVersion",
            value="2.15.0",
            reason="",
        )
    )
    (block,) = scratch(builder.build(), Library(5, 3)).blocks

    assert (block.nbytes, block.least) == (5, 3)
