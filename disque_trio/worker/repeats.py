"""Log lines that may be frequent, and log lines with a traceback."""

import logging
from collections.abc import Mapping
from typing import Final

import attrs

from disque_trio.worker.describing import trace_of, traceback_of

PERIOD_S: Final = 60.0
_MOST: Final = 1000
"""The number of keys that are remembered."""


@attrs.define
class _Line:
    written: float
    since: int = 0


@attrs.define(eq=False)
class Repeats:
    """The lines that were logged recently, by key."""

    _lines: dict[str, _Line] = attrs.Factory(dict)

    def due(self, key: str, now: float) -> str | None:
        """The text to append to a line that is due: the number of lines suppressed since the last
        one, or nothing. None if this line is suppressed, too. `now` is in seconds."""
        line = self._lines.get(key)
        if line is None:
            if len(self._lines) >= _MOST:
                del self._lines[next(iter(self._lines))]
            self._lines[key] = _Line(now)
            return ""
        if 0 <= now - line.written < PERIOD_S:
            line.since += 1
            return None
        since, self._lines[key] = line.since, _Line(now)
        return f" ({since} more like this since the last line)" if since else ""


def write_with_traceback(
    log: logging.Logger,
    level: int,
    text: str,
    args: tuple[object, ...],
    error: BaseException,
    extra: Mapping[str, object] | None = None,
) -> None:
    """Log a line with the traceback of an error, even if the traceback cannot be formatted."""
    if log.isEnabledFor(level):
        info = type(error), error, traceback_of(error)
        record = log.makeRecord(log.name, level, __file__, 0, text, args, info, None, extra)
        record.exc_text = trace_of(error).rstrip("\n")  # formatters do not format it again
        log.handle(record)
