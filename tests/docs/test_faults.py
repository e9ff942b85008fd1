"""The page of faults: each row names a test that brings the fault about, and each exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "faults.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
MAX_CELLS = 4


def rows() -> Iterator[list[str]]:
    """Yield the cells of each row that describes a fault."""
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] != "fault":
            yield cells


def test_each_row_names_its_test() -> None:
    """What happens, what is seen, and how it was tried."""
    found = list(rows())

    assert len(found) > 40
    assert [
        cells for cells in found if len(cells) != MAX_CELLS or not NAMED.search(cells[-1])
    ] == []


@pytest.mark.parametrize("path", sorted({path for path, _ in NAMED.findall(PAGE)}))
def test_each_named_test_exists(path: str) -> None:
    """A test that is renamed takes the page with it."""
    named = {name for file, name in NAMED.findall(PAGE) if file == path}
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    there = {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert named <= there


@pytest.mark.parametrize("event", sorted(set(re.findall(r"log `([^`]+)`", PAGE))))
def test_each_log_line_is_written(event: str) -> None:
    """By our code, or by Python's for what it tells itself."""
    sources = (path for name in ("admission", "estimator") for path in (ROOT / name).rglob("*.py"))
    known = any(f'"{event}"' in path.read_text(encoding="utf-8") for path in sources)

    assert known or event == "socket.accept() out of system resource"
