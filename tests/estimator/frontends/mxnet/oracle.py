"""MXNet itself, asked what it plans.

symbol, shapes -> the graph it binds and the megabytes it plans
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Row = tuple[str, tuple[int, ...], tuple[tuple[int, ...], ...]]
"""A node: operator, entries it reads, shapes it writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What MXNet binds and plans."""

    megabytes: int
    """`Total … MB allocated`: whole MiB, rounded down."""
    nodes: tuple[Row, ...]


class Oracle:
    """One process of MXNet."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._process = subprocess.Popen(
            [str(python), str(HERE / "oracle_program.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(),
        )

    def plan(
        self,
        document: Mapping[str, Any],
        shapes: Mapping[str, Sequence[int]],
        types: Mapping[str, str] | None = None,
    ) -> Planned:
        """Return what MXNet plans for a training step of a symbol."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        question = {
            "symbol": json.dumps(document),
            "shapes": {name: list(shape) for name, shape in shapes.items()},
            "types": dict(types or {}),
        }
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        found = json.loads(self._process.stdout.readline())
        assert "error" not in found, found["error"]
        return Planned(
            megabytes=found["megabytes"],
            nodes=tuple(
                (name, tuple(read), tuple(tuple(shape) for shape in written))
                for name, read, written in found["nodes"]
            ),
        )

    def run(self, program: str, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
        """Return the JSON that another program of this folder writes."""
        done = subprocess.run(
            [str(self._python), str(HERE / program), *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=environment() | dict(env or {}),
        )
        return json.loads(done.stdout)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def environment() -> dict[str, str]:
    """Return an environment in which nothing of ours is on the path, with few threads."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {"OMP_NUM_THREADS": "2"}
