"""Model files at hosts that the settings allow: how much of them is fetched."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest

from admission.sources.guard import Hosts
from admission.sources.network import Limits
from admission.sources.references import Origin, Reference
from admission.sources.urls import MAX_MODEL_FILE, AllowedUrls
from tests.admission.sources.servers import body, serving

LIMITS = Limits(max_bytes=1 << 20, seconds=5.0)
Handled = Callable[[BaseHTTPRequestHandler], None]


def ranged(content: bytes, asked: list[str | None]) -> Handled:
    """Return an answer with the part of *content* that is asked for, noted in *asked*."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        span = handler.headers.get("Range")
        asked.append(span)
        end = int(span.rpartition("-")[2]) + 1 if span else len(content)
        body(content[:end], status=206 if span else 200)(handler)

    return send


def fetched(path: str, answer: Handled) -> tuple[int, str]:
    """Return how many bytes of *path* are had, and the problem."""
    with serving({path: answer}) as (base, _):
        host = Hosts(named=frozenset({"127.0.0.1"}), plain=frozenset({"127.0.0.1"}))
        source = AllowedUrls(host, LIMITS)
        try:
            found = source.fetch(Reference(origin=Origin.URL, name=base + path), namespace="n")
        finally:
            source.close()
    content = found.blobs.get("", b"") or found.files.get("", "").encode()
    return len(content), found.problem


@pytest.mark.parametrize("path", ["/m.h5", "/m.hdf5", "/M.H5?version=3"])
def test_only_the_start_of_an_hdf5_file_is_asked_for(path: str) -> None:
    """It says there what it is; weights of any size come after."""
    asked: list[str | None] = []

    length, problem = fetched(path, ranged(b"\x89" * (MAX_MODEL_FILE + 5), asked))

    assert (length, problem) == (MAX_MODEL_FILE, "")
    assert asked == [f"bytes=0-{MAX_MODEL_FILE - 1}"]


def test_a_host_that_knows_no_parts_is_cut_off_at_the_limit() -> None:
    """It sends the whole file: what is longer is a named problem, not memory."""
    length, problem = fetched("/m.h5", body(b"\x89" * (MAX_MODEL_FILE + 5)))

    assert (length, problem) == (0, f"is longer than {MAX_MODEL_FILE} bytes")


def test_a_graph_may_be_longer_than_a_text() -> None:
    """Exports keep remarks on every node: a graph alone may have more than a megabyte."""
    content = b"\x08" * (LIMITS.max_bytes + 1)

    assert fetched("/m.onnx", body(content)) == (len(content), "")
    assert "longer than 1048576 bytes" in fetched("/m.json", body(content))[1]


def test_a_part_that_nobody_asked_for_is_no_answer() -> None:
    """206 is an answer to a question for a part alone."""
    assert fetched("/m.json", body("{}", status=206)) == (0, "answers with status 206")
