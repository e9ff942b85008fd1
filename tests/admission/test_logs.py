"""Log lines are one JSON object each, ours and those of libraries."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import orjson
import pytest
import structlog

from admission.config import LogFormat, LogLevel
from admission.logs import configure_logs


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Leave logging as it was found."""
    root, ours = logging.getLogger(), logging.getLogger("estimator")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    """Return the lines written so far."""
    return [orjson.loads(line) for line in stream.getvalue().splitlines()]


def test_event_is_one_json_line_with_time_and_level_first() -> None:
    """Machines parse it, and a person finds when and what at the start."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=stream)

    structlog.get_logger().info("reviewed", verdict="oom", seconds=0.5)

    (line,) = lines(stream)
    assert list(line) == ["timestamp", "level", "event", "verdict", "seconds"]
    assert (line["event"], line["verdict"], line["seconds"]) == ("reviewed", "oom", 0.5)


def test_lines_below_the_level_are_left_out() -> None:
    """At `warning` the line of each decision is not written."""
    stream = io.StringIO()
    configure_logs(LogLevel.WARNING, form=LogFormat.JSON, stream=stream)

    structlog.get_logger().info("reviewed")
    structlog.get_logger().warning("request refused")

    assert [line["event"] for line in lines(stream)] == ["request refused"]


def test_traceback_is_part_of_its_line() -> None:
    """A fault stays one line, with the traceback inside."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=stream)

    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        structlog.get_logger().exception("review failed")

    (line,) = lines(stream)
    assert "ZeroDivisionError" in str(line["exception"])


def test_library_lines_come_out_in_the_same_format() -> None:
    """What aiohttp or the estimator's pool log through the standard library is JSON too."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=stream)

    logging.getLogger("aiohttp.server").warning("odd request %d", 7)
    logging.getLogger("aiohttp.server").info("chatter")

    (line,) = lines(stream)
    assert (line["event"], line["logger"]) == ("odd request 7", "aiohttp.server")


def test_extra_fields_of_a_standard_log_line_are_kept() -> None:
    """What the workers say beside their message (which fork, which status) reaches the log."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=stream)

    logging.getLogger("estimator.workers").warning("a fork ended", extra={"status": 9})

    (line,) = lines(stream)
    assert (line["event"], line["status"]) == ("a fork ended", 9)


def test_templates_are_heard_at_info_and_libraries_are_not() -> None:
    """An operator sees when a template is warm; the estimator's lines count as ours."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=stream)

    logging.getLogger("estimator.workers.supervisor").info("template ready", extra={"seconds": 8})
    logging.getLogger("kubernetes.client").info("chatter")

    (line,) = lines(stream)
    assert (line["level"], line["event"], line["seconds"]) == ("info", "template ready", 8)


def test_console_format_is_for_people() -> None:
    """One readable line, no JSON."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=LogFormat.CONSOLE, stream=stream)

    structlog.get_logger().info("listening", port=8443)

    (line,) = stream.getvalue().splitlines()
    assert "listening" in line
    assert "port=8443" in line


@pytest.mark.parametrize("form", list(LogFormat))
@pytest.mark.parametrize(
    "text",
    [
        'x\n{"level":"error","event":"denied"}',
        "x\r2026-01-01 [error] denied",
        "\x1b[2J\x1b]0;title\x07",
        "\x9b31mred",
        "a\u202egnp.exe",
        "zero\u200bwidth\u2028line",
        "half \ud800 of a character",
    ],
)
def test_nobodys_text_shows_anything_but_itself(text: str, form: LogFormat) -> None:
    """Names of objects, messages of libraries and exceptions: one line, no character unseen."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=form, stream=stream)

    structlog.get_logger().info("reviewed", name=text)
    logging.getLogger("kubernetes.client").warning("said %s", text)

    logged = stream.getvalue().removesuffix("\n").split("\n")
    assert len(logged) == 2
    assert all(line.isprintable() for line in logged)
    if form is LogFormat.JSON:
        assert orjson.loads(logged[0])["name"] == text if "\ud800" not in text else True


def test_a_number_without_end_is_logged() -> None:
    """JSON's writer knows 64 bits; a line that cannot be written would be an exception of ours."""
    stream = io.StringIO()
    configure_logs(LogLevel.INFO, form=LogFormat.JSON, stream=stream)

    structlog.get_logger().info("reviewed", count=1 << 80)

    assert str(1 << 80) in stream.getvalue()
