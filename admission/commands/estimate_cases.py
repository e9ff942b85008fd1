"""Many cases, one a line, answered in order while they are read.

    lines of cases, Estimator -> answers

A bounded number is under way at once; nothing is held longer than its turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from typing import Any

import orjson

from admission.commands.job_file import followed
from admission.plaintext import plain
from estimator.catalog import resolve_device
from estimator.device import Device
from estimator.errors import EstimatorError, Problem, SpecError
from estimator.spec import parse_spec
from estimator.workers.api import Estimator


async def answer_cases(
    lines: Iterable[bytes], estimator: Estimator, *, device: Device, window: int
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the answer to each of *lines* in order, at most *window* of them under way.

    Lines are read as they come, so a reader may wait for one answer before it writes the next.
    """
    numbered = iter(enumerate(lines, 1))
    reading: asyncio.Task[tuple[int, bytes] | None] | None = _read_next(numbered)
    pending: deque[asyncio.Task[dict[str, Any]]] = deque()
    try:
        while reading or pending:
            waited: list[asyncio.Task[Any]] = [pending[0]] if pending else []
            if reading and len(pending) < window:
                waited.append(reading)
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if reading and reading in waited and reading.done():
                item = reading.result()
                if item is not None and item[1].strip():
                    case = answer_case(item[1], estimator, number=item[0], device=device)
                    pending.append(asyncio.create_task(case))
                reading = _read_next(numbered) if item is not None else None
            while pending and pending[0].done():
                yield pending.popleft().result()
    finally:
        started = [*pending, *([reading] if reading else [])]
        for task in started:
            task.cancel()
        await asyncio.gather(*started, return_exceptions=True)


async def answer_case(
    line: bytes, estimator: Estimator, *, number: int, device: Device
) -> dict[str, Any]:
    """Return `{"id", "estimate"}` or `{"id", "error"}` for one line; *device* if it names none."""
    name: object = None
    try:
        fields = _fields(line, number)
        name = _readable_id(fields)
        case = _case(fields, number)
        job = await asyncio.to_thread(followed, parse_spec(case["spec"]))
        card = resolve_device(case["gpu"]) if "gpu" in case else device
        (estimate,) = await estimator.estimate(job, [card])
    except EstimatorError as error:
        return {"id": name, "error": {"kind": error.kind, "message": error.message}}
    return {"id": name, "estimate": estimate.document()}


def _fields(line: bytes, number: int) -> Mapping[str, Any]:
    """Return the mapping in *line*.

    Raises:
        SpecError: naming the line.
    """
    try:
        case = orjson.loads(line.strip())
    except orjson.JSONDecodeError as error:
        raise _line_error(number, f"not JSON: {error}") from error
    if not isinstance(case, dict):
        raise _line_error(number, "a case is a mapping with the keys id, spec, gpu")
    return case


def _readable_id(case: Mapping[str, Any]) -> str | int | None:
    """Return the id if it is one, whatever else is wrong with the case."""
    name = case.get("id")
    return name if isinstance(name, str | int) and not isinstance(name, bool) else None


def _case(case: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """Return *case*; its keys and the types of `id` and `gpu` are right.

    Raises:
        SpecError: naming the line.
    """
    if unknown := sorted(case.keys() - {"id", "spec", "gpu"}):
        raise _line_error(number, f"{plain(', '.join(unknown))}: unknown key, known: id, spec, gpu")
    if missing := [key for key in ("id", "spec") if key not in case]:
        raise _line_error(number, f"{', '.join(missing)}: missing")
    if _readable_id(case) is None:
        raise _line_error(number, "id: a text or a whole number is accepted")
    if not isinstance(case.get("gpu", ""), str):
        raise _line_error(number, "gpu: the name of a card is accepted")
    return case


def _line_error(number: int, message: str) -> SpecError:
    return SpecError([Problem(path=f"line {number}", message=message)])


def _read_next(
    numbered: Iterator[tuple[int, bytes]],
) -> asyncio.Task[tuple[int, bytes] | None]:
    return asyncio.create_task(asyncio.to_thread(next, numbered, None))
