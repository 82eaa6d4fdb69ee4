"""The log for the operator: the original's levels, one line per event, human-readable or JSON.

`human` lines are coloured on a terminal; `json` lines have the same facts as fields. The log file
is opened for every line, as the original does, so that it can be rotated without a signal.
"""

import contextlib
import io
import sys
import syslog
import time
from collections.abc import Callable, Mapping
from typing import Final, TextIO

from disque_trio.jsonlines import as_json
from disque_trio.statemachine.config import Config
from disque_trio.system import private

LEVELS: Final = {"debug": 0, "verbose": 1, "notice": 2, "warning": 3}
_PRIORITIES: Final = {
    "debug": syslog.LOG_DEBUG,
    "verbose": syslog.LOG_INFO,
    "notice": syslog.LOG_NOTICE,
    "warning": syslog.LOG_WARNING,
}
_COLOURS: Final = {
    "debug": "\x1b[2m",
    "verbose": "\x1b[36m",
    "notice": "\x1b[32m",
    "warning": "\x1b[1;33m",
}

Facts = Mapping[str, object]
Render = Callable[[str, str, Facts], str]
"""A line of a level, an event and its facts."""


class Threshold:
    """The least level that is logged. CONFIG SET loglevel moves it."""

    def __init__(self, level: str) -> None:
        self.set(level)

    def set(self, level: str) -> None:
        """Log this level and those above."""
        self.level = LEVELS[level]


class Sink:
    """Where finished lines go: standard output or a file, and syslog if that is on."""

    def __init__(self, config: Config, stream: TextIO) -> None:
        self._path = config.logfile
        self._stream = stream
        self._syslog = config.syslog_enabled
        if self._syslog:
            facility = getattr(syslog, f"LOG_{config.syslog_facility.upper()}")
            syslog.openlog(config.syslog_ident, syslog.LOG_PID | syslog.LOG_NDELAY, facility)

    def write(self, level: str, line: str) -> None:
        """Write the line, and send it to syslog."""
        if self._syslog:
            syslog.syslog(_PRIORITIES[level], line)
        # A full disk or a closed pipe must not end a server that works.
        with contextlib.suppress(OSError):
            if self._path:
                with open(
                    self._path, "a", encoding="utf-8", errors="backslashreplace", opener=private
                ) as file:
                    file.write(line + "\n")
            else:
                self._stream.write(line + "\n")
                self._stream.flush()


class ServerLog:
    """The node's `Log`."""

    def __init__(
        self, sink: Sink, threshold: Threshold, render: Render, bound: Facts | None = None
    ) -> None:
        self._sink = sink
        self._threshold = threshold
        self._render = render
        self._bound = bound or {}

    def bind(self, **facts: object) -> "ServerLog":
        """The same log, with facts that stand in each of its lines."""
        return ServerLog(self._sink, self._threshold, self._render, {**self._bound, **facts})

    def debug(self, event: str, **facts: object) -> None:
        """For developers."""
        self._say("debug", event, facts)

    def verbose(self, event: str, **facts: object) -> None:
        """Rarely useful, but not noise."""
        self._say("verbose", event, facts)

    def notice(self, event: str, **facts: object) -> None:
        """Log an event that matters in production."""
        self._say("notice", event, facts)

    def warning(self, event: str, **facts: object) -> None:
        """Log an event that an operator should check."""
        self._say("warning", event, facts)

    def set_level(self, level: str) -> None:
        """Log this level and those above from now on, whatever is bound."""
        self._threshold.set(level)

    def _say(self, level: str, event: str, facts: Facts) -> None:
        if LEVELS[level] >= self._threshold.level:
            self._sink.write(level, self._render(level, event, {**self._bound, **facts}))


class LogFileError(Exception):
    """The log file cannot be written: which, and why."""


def check_log(config: Config) -> None:
    """Check that the log file can be written. Raises `LogFileError`."""
    if config.logfile:
        try:
            with open(config.logfile, "a", encoding="utf-8", opener=private):
                pass
        except OSError as error:
            raise LogFileError(
                f"cannot write the log file '{config.logfile}': {error.strerror}; give another "
                "'logfile', or none to log to standard output"
            ) from None


def open_log(config: Config, stream: TextIO = sys.stdout) -> ServerLog:
    """The log that the configuration asks for."""
    if isinstance(stream, io.TextIOWrapper):
        # A name of a client or peer that cannot be encoded must not end the server.
        stream.reconfigure(errors="backslashreplace")
    render: Render = as_json
    if config.log_format != "json":
        render = Lines(is_coloured=not config.logfile and stream.isatty())
    return ServerLog(Sink(config, stream), Threshold(config.loglevel), render)


class Lines:
    """Renders for people: time, level, event, facts."""

    def __init__(self, *, is_coloured: bool) -> None:
        self._is_coloured = is_coloured

    def __call__(self, level: str, event: str, facts: Facts) -> str:
        """The line, without its end."""
        now = time.time()
        stamp = (
            f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now))}.{int(now % 1 * 1000):03}"
        )
        rest = " ".join(f"{name}={_shown(value)}" for name, value in facts.items())
        dim, colour, plain = (
            ("\x1b[2m", _COLOURS[level], "\x1b[0m") if self._is_coloured else ("", "", "")
        )
        return f"{dim}{stamp}{plain} {colour}{level:7}{plain} {event}  {dim}{rest}{plain}".rstrip()


def _shown(value: object) -> str:
    """Quote a value, which may come from any client, if it would break the line."""
    text = str(value)
    if text and text.isprintable() and " " not in text and '"' not in text:
        return text
    return repr(text)
