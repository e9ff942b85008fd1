"""Trace files: what is written is read back, and a hostile file is one readable problem."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import SpecError, TraceError
from estimator.notes import Assumption, AssumptionCode, Unknown, UnknownCode
from estimator.spec import parse_spec
from estimator.trace import AT_MOST, Kernel, Phase, Role, TensorFacts, Trace, TraceBuilder
from estimator.tracefile import MAX_CONTENT, Recording, read_recording, recorded, restated
from estimator.tracefile.document import MAX_DOCUMENT
from estimator.traits import Traits
from tests.estimator.stub import StubFrontend, spec_of

AMPERE = Traits(flash_attention=True, efficient_attention=True, native_bf16=True)
CONVOLUTION = Kernel(
    operator="aten.convolution",
    operands=(
        TensorFacts(shape=(1, 3, 8, 8), dtype="float32", channels_last=True),
        TensorFacts(shape=(4, 3, 3, 3), dtype="float32"),
        TensorFacts(shape=(1, 4, 8, 8), dtype="float32"),
    ),
    attributes=(("stride", (1, 1)), ("groups", 1), ("transposed", False), ("thread", "forward")),
)


def full_trace() -> Trace:
    """Return a trace with an event of every kind and a note of every kind."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0+cu132")
    weight = builder.alloc(4 * 3 * 9 * 4, Role.PARAMETER)
    builder.at(step=1, phase=Phase.FORWARD, operator="aten.convolution", module="conv")
    output = builder.alloc(4 * 8 * 8 * 4, Role.ACTIVATION)
    builder.kernel(CONVOLUTION)
    builder.use(output)
    pool = builder.private_pool()
    captured = builder.alloc(1 << 20, Role.TEMPORARY, stream=pool)
    builder.at(step=1, phase=Phase.BACKWARD, operator="aten.relu", module="")
    builder.kernel(Kernel(operator="aten.mm", operands=()))
    builder.kernel(CONVOLUTION)
    builder.free(captured)
    builder.release_pool(pool)
    builder.free(output)
    builder.empty_cache()
    builder.free(weight)
    builder.assumptions.append(
        Assumption(code=AssumptionCode.DEFAULT, path="a", value="b", reason="c")
    )
    builder.unknowns.append(Unknown(code=UnknownCode.OPERATOR, path="model", reason="d"))
    builder.warnings.append("e")
    builder.facts[AT_MOST] = "boxes"
    return builder.build(parameters=4 * 3 * 9)


def recording_of(trace: Trace | None = None, **changes: Any) -> Recording:
    """Return *trace*, by default the full one, as a recording of the stub's job."""
    return recorded(spec_of(8, **changes), traits=AMPERE, trace=trace or full_trace())


def document_of(recording: Recording) -> dict[str, Any]:
    """Return the JSON in a Trace file."""
    document: dict[str, Any] = orjson.loads(gzip.decompress(recording.content))
    return document


def packed(document: object) -> bytes:
    """Return a Trace file of *document*."""
    return gzip.compress(orjson.dumps(document), mtime=0)


def problems(content: bytes) -> list[str]:
    """Return what is wrong with *content*."""
    with pytest.raises(SpecError) as caught:
        read_recording(content)
    return [str(problem) for problem in caught.value.problems]


def test_a_trace_is_read_as_it_was_written() -> None:
    """Every column, kernel and note is equal, and so are the bytes of the same job."""
    recording = recording_of()

    assert read_recording(recording.content) == recording
    assert recording.trace == full_trace()
    assert recording_of().content == recording.content


def test_facts_of_one_run_are_not_written() -> None:
    """How long tracing took is no part of the file: the same job makes the same bytes."""
    builder_trace = full_trace()
    timed = Trace(
        **{name: getattr(builder_trace, name) for name in Trace.__slots__ if name != "facts"},
        facts={**builder_trace.facts, "runSeconds": "1.234"},
    )

    assert recording_of(timed).content == recording_of().content


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.booleans()), max_size=60))
def test_any_order_of_frees_is_read_as_it_was_written(steps: list[tuple[int, bool]]) -> None:
    """Ids are relative to the newest tensor, however old the freed one is."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    alive: list[int] = []
    for size, frees in steps:
        if frees and alive:
            builder.free(alive.pop(size % len(alive)))
        else:
            alive.append(builder.alloc(size, Role.ACTIVATION))
    trace = builder.build()

    assert read_recording(recording_of(trace).content).trace == trace


def test_the_digest_of_the_job_depends_on_the_trace() -> None:
    """Two traces of one spec are two jobs, for caches too; another compression is the same."""
    full, other = recording_of(), recording_of(StubFrontend().trace_job(spec_of(8), traits=AMPERE))
    repacked = gzip.compress(gzip.decompress(full.content), compresslevel=1, mtime=7)

    assert full.spec.digest() != other.spec.digest()
    assert full.spec.digest() != spec_of(8).digest()
    assert read_recording(repacked).spec == full.spec


def test_a_trace_that_is_too_long_is_an_error_of_its_own() -> None:
    """What does not compress to 900 KiB is not written."""
    builder = TraceBuilder(framework="pytorch", framework_version="2.15.0")
    for index in range(400_000):
        builder.alloc(index * 0x9E3779B97F4A7C15 % (1 << 44), Role.ACTIVATION)

    with pytest.raises(TraceError, match=f"a Trace file holds {MAX_CONTENT} and {MAX_DOCUMENT}"):
        recording_of(builder.build())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "ends early"),
        (b"{}", "not gzip"),
        (b"\x1f\x8b", "ends early"),
        (b"\x1f\x8b" + bytes(40), "not gzip"),
        (recording_of().content[:-9], "ends early"),
        (recording_of().content[:200], "ends early"),
        (recording_of().content[:-8] + bytes(8), "not gzip"),
        (recording_of().content + b"\0", "something follows the trace"),
        (recording_of().content * 2, "something follows the trace"),
        (bytes(MAX_CONTENT + 1), f"longer than {MAX_CONTENT} bytes"),
        (gzip.compress(b"{"), "not JSON"),
        (gzip.compress(b'{"kind": NaN}'), "not JSON"),
        (gzip.compress(b"[" * 100_000), "not JSON"),
        (gzip.compress(b"\xff\xfe"), "not JSON"),
        (gzip.compress(b"[]"), "is not a mapping"),
    ],
)
def test_what_is_no_trace_file_is_said_in_a_line(content: bytes, message: str) -> None:
    """Truncated, padded, foreign and endless bytes are one problem each."""
    (problem,) = problems(content)

    assert message in problem
    assert len(problem) < 300


def test_a_bomb_is_not_unpacked() -> None:
    """1 GiB of zeros in a megabyte, and in a megabyte of a megabyte, stops at the limit."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(800)) + packer.flush()
    assert len(bomb) < MAX_CONTENT

    assert problems(bomb) == [f"unpacks to more than {MAX_DOCUMENT} bytes"]


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        (lambda d: d.update(kind="JobSpec"), "kind", "is not one of 'Trace'"),
        (lambda d: d.update(apiVersion="v2"), "apiVersion", "is not one of"),
        (lambda d: d.update(pickle="gASV"), "pickle", "unknown key"),
        (lambda d: d["trace"].update(code="x"), "trace.code", "unknown key"),
        (lambda d: d.pop("traits"), "traits", "missing"),
        (lambda d: d["traits"].update(nativeBf16=1), "traits.nativeBf16", "is not accepted"),
        (lambda d: d["spec"].pop("input"), "spec.input", "missing"),
        (lambda d: d["spec"].update(a=1), "spec.a", "unknown key"),
        (lambda d: d.update(spec=[]), "spec", "is not a mapping"),
        (lambda d: d["spec"]["model"].update(source="trace"), "spec.model.source", "'trace'"),
        (lambda d: _events(d)["kinds"].__setitem__(0, 6), "trace.events.kinds[0]", "less than"),
        (lambda d: _events(d)["kinds"].__setitem__(0, -1), "trace.events.kinds[0]", "greater"),
        (lambda d: _events(d)["kinds"].__setitem__(0, True), "trace.events.kinds[0]", "integer"),
        (lambda d: _events(d)["kinds"].__setitem__(0, "0"), "trace.events.kinds[0]", "integer"),
        (lambda d: _events(d)["kinds"].__setitem__(0, 1), "trace.events[0]", "freed but not"),
        (lambda d: _events(d)["kinds"].append(0), "trace.events.places", "entries"),
        (lambda d: _events(d)["kinds"].pop(), "trace.events.places", "entries"),
        (lambda d: _events(d)["ids"].pop(), "trace.events.ids", "one is missing for event 11"),
        (lambda d: _events(d)["ids"].append(0), "trace.events", "fewer events than"),
        (lambda d: _events(d)["ids"].__setitem__(1, -1), "trace.events[3]", "not alive"),
        (lambda d: _events(d)["ids"].__setitem__(1, 9), "trace.events[3]", "not alive"),
        (lambda d: _events(d)["ids"].__setitem__(-1, 0), "trace.events[11]", "not alive"),
        (lambda d: _events(d)["ids"].__setitem__(0, 2), "trace.events[2]", "not one of 2"),
        (lambda d: _events(d)["ids"].__setitem__(0, -1), "trace.events[2]", "kernel -1"),
        (lambda d: _events(d)["ids"].__setitem__(0, 1 << 62), "trace.events.ids[0]", "less than"),
        (lambda d: _events(d)["ids"].__setitem__(5, 127), "trace.events[8]", "within 128 and 255"),
        (lambda d: _events(d)["ids"].__setitem__(7, 1), "trace.events[10]", "within 0 and 0"),
        (lambda d: _events(d)["places"].__setitem__(0, 3), "trace.events.places[0]", "not one"),
        (lambda d: _events(d)["places"].__setitem__(0, -1), "trace.events.places[0]", "not one"),
        (lambda d: _tensors(d)["sizes"].__setitem__(0, -1), "trace.tensors.sizes[0]", "greater"),
        (lambda d: _tensors(d)["sizes"].__setitem__(0, 1 << 45), "trace.tensors.sizes[0]", "less"),
        (lambda d: _tensors(d)["sizes"].__setitem__(0, 1.5), "trace.tensors.sizes[0]", "integer"),
        (lambda d: _tensors(d)["sizes"].pop(), "trace.tensors.roles", "3 entries, 2"),
        (lambda d: _tensors(d)["roles"].__setitem__(0, 8), "trace.tensors.roles[0]", "less than"),
        (lambda d: _tensors(d)["roles"].pop(), "trace.tensors.roles", "2 entries, 3"),
        (lambda d: _tensors(d)["streams"].pop(), "trace.tensors.streams", "2 entries, 3"),
        (lambda d: _grow(d, -1), "trace.events[4]", "more allocations than the 2 tensors"),
        (lambda d: _grow(d, 1), "trace.events", "fewer events than tensors"),
        (
            lambda d: d["trace"]["placeTable"][1].update(phase="x"),
            "trace.placeTable[1].phase",
            "is not one of",
        ),
        (
            lambda d: d["trace"]["placeTable"][1].update(module=99),
            "trace.placeTable[1]",
            "not one of the",
        ),
        (
            lambda d: d["trace"]["kernels"][0]["operands"][0].update(shape=[1 << 30, 1 << 30]),
            "trace.kernels[0].operands[0].shape",
            "elements",
        ),
        (
            lambda d: d["trace"]["kernels"][0]["operands"][0].update(shape=[-1]),
            "trace.kernels[0].operands[0].shape[0]",
            "greater",
        ),
        (
            lambda d: d["trace"]["kernels"][0]["operands"][0].update(dtype="float32; rm"),
            "trace.kernels[0].operands[0].dtype",
            "pattern",
        ),
        (
            lambda d: d["trace"]["kernels"][0]["operands"].__imul__(30),
            "trace.kernels[0].operands",
            "at most 64",
        ),
        (
            lambda d: d["trace"]["unknowns"][0].update(code="new"),
            "trace.unknowns[0].code",
            "is not one of",
        ),
        (lambda d: d["trace"].update(warnings=["x" * 3000]), "trace.warnings[0]", "at most 2048"),
    ],
)
def test_a_number_or_key_that_does_not_belong_is_named(
    change: Change, path: str, message: str
) -> None:
    """The problem says where, and what is accepted; the rest of a hostile list is not repeated."""
    document = document_of(recording_of())
    change(document)

    found = problems(packed(document))

    assert any(line.startswith(f"{path}: ") and message in line for line in found), found
    assert len(found) <= 4


def _events(document: dict[str, Any]) -> dict[str, list[Any]]:
    events: dict[str, list[Any]] = document["trace"]["events"]
    return events


def _tensors(document: dict[str, Any]) -> dict[str, list[Any]]:
    tensors: dict[str, list[Any]] = document["trace"]["tensors"]
    return tensors


def _grow(document: dict[str, Any], by: int) -> None:
    for column in _tensors(document).values():
        if by < 0:
            column.pop()
        else:
            column.append(0)


def test_counts_have_bounds() -> None:
    """A million equal entries pack to nothing: their number is limited, not only the bytes."""
    document = document_of(recording_of())
    document["trace"]["kernels"] = document["trace"]["kernels"][1:] * 30_000
    _tensors(document)["streams"] = [0] * 1_100_000

    found = problems(packed(document))

    assert any(line.startswith("trace.kernels: ") and "20000" in line for line in found)
    assert any(line.startswith("trace.tensors.streams: ") and "1000000" in line for line in found)
    assert all(len(line) < 400 for line in found)


def test_a_file_of_nothing_but_mistakes_is_refused_in_one_line() -> None:
    """Hundreds of thousands of unknown keys are counted, not listed."""
    document = document_of(recording_of())
    document["trace"].update({str(index): 0 for index in range(250_000)})

    assert problems(packed(document)) == ["250000 problems; 20 would be listed"]


@given(st.data())
def test_a_file_with_any_bytes_changed_is_read_or_refused(data: st.DataObject) -> None:
    """Nothing but `SpecError` comes out of a document with a few bytes replaced."""
    content = bytearray(gzip.decompress(recording_of().content))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))

    try:
        recording = read_recording(gzip.compress(bytes(content)))
    except SpecError:
        return

    assert recording.trace.num_events == full_trace().num_events


def _stated(**changes: Any) -> Any:
    document = {
        "framework": "pytorch",
        "model": {"source": "trace", "name": "job.trace.gz"},
        "input": {"batchSize": 8},
    }
    return parse_spec(document | changes)


def test_the_run_time_of_a_recorded_job_may_be_stated_anew() -> None:
    """What only a replay reads is laid over what was recorded."""
    recording = recording_of(runtime={"extraBytes": 5, "driver": "535"})

    found = restated(recording, _stated(runtime={"extraBytes": 7, "env": {"A": "b"}}))

    runtime = found.spec.runtime
    assert (runtime.extra_bytes, runtime.driver, runtime.env) == (7, "535", {"A": "b"})
    assert found.trace is recording.trace
    assert found.spec.digest() != recording.spec.digest()


def test_another_job_than_the_recorded_one_is_refused_value_by_value() -> None:
    """A trace is one job at one batch: all differences are named at once."""
    stated = _stated(
        input={"batchSize": 9},
        training={"optimizer": {"name": "sgd"}},
        runtime={"cudnnBenchmark": True},
        model={"source": "trace", "name": "a", "attention": "sdpa", "revision": "sha256:0"},
    )

    with pytest.raises(SpecError, match="one job at one size") as caught:
        restated(recording_of(), stated)

    assert [problem.path for problem in caught.value.problems] == [
        "input.batchSize",
        "training.optimizer.name",
        "runtime.cudnnBenchmark",
        "model.attention",
        "model.revision",
    ]


def test_a_revision_pins_the_content() -> None:
    """The digest that an estimate shows is accepted as the revision."""
    recording = recording_of()
    model = {"source": "trace", "name": "a", "revision": recording.spec.model.revision}

    assert restated(recording, _stated(model=model)) == recording
