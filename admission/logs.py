"""Set up logging: constant events with key/value pairs, one line each, to standard error.

    settings -> structlog and the standard library's logging, in one format

Libraries that log through the standard library come out in the same format. What a line is made of
may be anybody's text: characters that are not seen come out as escapes, whoever reads the log and
with whatever.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TextIO, cast

import orjson
import structlog

from admission.config import LogFormat, LogLevel
from admission.log_stream import LogStream

_LEVELS = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
}


def configure_logs(level: LogLevel, *, form: LogFormat, stream: TextIO | None = None) -> None:
    """Write every log line of at least *level* to *stream* (standard error) from now on.

    Tracebacks go here and nowhere else.
    """
    lines = LogStream(sys.stderr if stream is None else stream, lost=_lost)
    shared: Sequence[Any] = (
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    )
    last = _last_processors(form)
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, lines)),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(lines)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
            foreign_pre_chain=[
                *shared,
                structlog.stdlib.add_logger_name,
                structlog.stdlib.ExtraAdder(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # Libraries are chatty at info: only what may need a person is kept. The estimator is ours.
    root.setLevel(max(_LEVELS[level], logging.WARNING))
    logging.getLogger("estimator").setLevel(_LEVELS[level])


def _lost(number: int) -> str:
    """Return the line that stands for *number* that could not be written."""
    fields = {
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "level": "warning",
        "event": "log lines lost",
        "lines": number,
    }
    return orjson.dumps(fields).decode()


def _last_processors(form: LogFormat) -> list[Any]:
    """Return what turns an event into one line of text."""
    if form is LogFormat.CONSOLE:
        # Plain: the default adds the values of variables, and a token may be among them.
        plain = structlog.dev.plain_traceback
        renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain)
        return [_one_line, renderer, _seen]
    return [structlog.processors.format_exc_info, _json_line]


def _json_line(_: Any, __: str, event: structlog.typing.EventDict) -> str:
    """Return the event as JSON, when and what first."""
    first = {key: event.pop(key, None) for key in ("timestamp", "level", "event")}
    fields = {**first, **event}
    try:
        text = orjson.dumps(fields, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        # Halves of a character, and numbers of more than 64 bits: no reason to say nothing.
        return json.dumps({str(key): value for key, value in fields.items()}, default=str)
    return text if text.isprintable() else "".join(map(_json_escaped, text))


def _json_escaped(character: str) -> str:
    """Return *character* as JSON may have it, where it is one that is not seen."""
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _one_line(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Return *event* with what happened on one line: a library's words may hold anything."""
    event["event"] = _visible(str(event.get("event")))
    return event


def _seen(_: Any, __: str, text: str) -> str:
    """Return *text*, of several lines where it has a traceback, without unseen characters."""
    return "\n".join(map(_visible, text.split("\n")))


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
