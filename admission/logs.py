"""Set up logging: constant events with key/value pairs, one line each, to standard error.

    settings -> structlog and the standard library's logging, in one format

Libraries that log through the standard library come out in the same format.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import orjson
import structlog

from admission.config import LogFormat, LogLevel

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
    stream = sys.stderr if stream is None else stream
    shared: Sequence[Any] = (
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    )
    last = _last_processors(form)
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
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


def _last_processors(form: LogFormat) -> list[Any]:
    """Return what turns an event into one line of text."""
    if form is LogFormat.CONSOLE:
        # Plain: the default adds the values of variables, and a token may be among them.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain)]
    return [structlog.processors.format_exc_info, _json_line]


def _json_line(_: Any, __: str, event: structlog.typing.EventDict) -> str:
    """Return the event as JSON, when and what first."""
    first = {key: event.pop(key, None) for key in ("timestamp", "level", "event")}
    return orjson.dumps({**first, **event}, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
