"""Logging: structlog on standard error, as text for people or JSON for collectors."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from typing import Any, TextIO

import structlog
from structlog.typing import ExcInfo, Processor

from quarry.settings import TelemetrySettings

REDACTED = "[redacted]"
PRIVATE = frozenset(
    "question answer text quote passage content prompt messages evidence filter "
    "token authorization api_key password secret headers body".split()
)
"""Fields whose values never reach a log, wherever they stand in an event."""

CHATTY = ("faiss", "httpcore", "httpx", "pymilvus", "sentence_transformers", "urllib3")
"""Loggers of libraries that say at level info what is of use to their authors only."""


def configure_logging(
    settings: TelemetrySettings, *, stream: TextIO | None = None, part: str = ""
) -> None:
    """Sets up this process: one line an event, private fields redacted.

    Lines of libraries that log by the standard library come out in the same form. `part` of Quarry
    stands in every line of JSON; before text Ray puts it.
    """
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        *([_of(part)] if part and settings.log_format == "json" else []),
        redact,
        structlog.processors.ExceptionRenderer(frames),
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(max(level, logging.WARNING))


def _of(part: str) -> Processor:
    def name(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        event["part"] = part
        return event

    return name


def frames(exc_info: ExcInfo) -> str:
    """Where an exception was raised, and what its causes were, by type alone.

    The message of an exception may quote a document or a question, so it is left out.
    """
    lines: list[str] = []
    error: BaseException | None = exc_info[1]
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        lines.append(f"{type(error).__module__}.{type(error).__qualname__}")
        lines += (
            f"  {frame.filename}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        )
        error = error.__cause__ or error.__context__
    return "\n".join(lines)


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replaces the values of private fields, also inside mappings."""
    for key, value in event.items():
        if key.lower() in PRIVATE:
            event[key] = REDACTED
        elif isinstance(value, Mapping):
            event[key] = redact(_logger, _method, dict(value))
    return event
