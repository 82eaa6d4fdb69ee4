"""The log of a worker process on stderr: a line for each record, with its job."""

import logging
import sys
from typing import Any, Final

from disque_trio.jsonlines import as_json
from disque_trio.terminal.escapes import printable_lines
from disque_trio.worker.describing import trace_of

FORMATS: Final = ("human", "json")
_USUAL: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "about"}
"""What each record has; the rest is what whoever logs has added."""


class Lines(logging.Formatter):
    """Lines with the task and the id of the job that they are about. `child` is the number of a
    process that has a parent."""

    def __init__(self, child: str = "") -> None:
        who = f" [{child}]" if child else ""
        super().__init__(f"%(asctime)s{who} %(levelname)s %(about)s%(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """The line without a traceback."""
        known = vars(record)
        about = " ".join(str(known[name]) for name in ("task", "job") if known.get(name))
        record.about = f"{about}: " if about else ""
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """The traceback, also of an error that cannot be formatted."""
        return _trace(ei)

    def format(self, record: logging.LogRecord) -> str:
        """Return all lines, with escapes: texts of exceptions may contain data of a producer."""
        return printable_lines(super().format(record))


class JsonLines(logging.Formatter):
    """The same in JSON: the facts of a record, such as `job`, `task`, `key` and `attempt`, are
    fields, and a traceback is the field `traceback`."""

    def __init__(self, child: str = "") -> None:
        super().__init__()
        self._bound = {"worker": int(child)} if child else {}

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        facts = {name: value for name, value in vars(record).items() if name not in _USUAL}
        if record.exc_text or record.exc_info:
            facts["traceback"] = record.exc_text or _trace(record.exc_info)
        facts = {**self._bound, "logger": record.name, **facts}
        return as_json(record.levelname.lower(), record.getMessage(), facts, record.created)


def _trace(info: Any) -> str:
    error = info[1]
    return "" if error is None else trace_of(error).rstrip("\n")


def log_to_stderr(level: str, child: str = "", form: str = "human") -> None:
    """For this process, unless the app has set up its own handlers. `form` is one of `FORMATS`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(child) if form == "json" else Lines(child))
    logging.basicConfig(level=level.upper(), handlers=[handler])
