"""What the command lines have in common: carrying one out, its errors, and words for numbers."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, TextIO, cast

from disque_trio.client.errors import DisqueError
from disque_trio.terminal.interrupts import is_interrupt
from disque_trio.terminal.options import (
    Kind,
    Program,
    UsageError,
    matching,
    option,
    parse,
    switch,
)
from disque_trio.terminal.output import complain, discard_output, flush, say_json

FAILED: Final = 1
"""A node refuses it, no node answers, or there is nothing of that name."""
USAGE: Final = 2
"""A bad option, or something that was asked for and cannot be done."""
PARTIAL: Final = 3
"""Nodes did not answer: the output, or the operation, is without them."""
INTERRUPTED: Final = 130
"""What shells report for a program ended by Ctrl-C."""
TERMINATED: Final = 143
"""The same for SIGTERM."""


class NotDoneError(Exception):
    """It cannot be done; the text says why, for the user."""


def run(name: str, program: Program, words: Sequence[str], *, is_terminable: bool = True) -> int:
    """Carry out `disque-trio NAME WORDS`. The exit status. A command for which Ctrl-C is not its
    end is not `is_terminable`: SIGTERM ends it at once."""
    if not is_terminable:
        return _carried_out(name, program, words)
    with _terminable() as came:
        status = _carried_out(name, program, words)
    return TERMINATED if came and status == INTERRUPTED else status


@contextmanager
def _terminable() -> Iterator[list[int]]:
    """SIGTERM ends a command as Ctrl-C does: what has been finished is kept, and processes and
    temporary files of the command end with it. The signals that came."""
    came: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if callable(signal.getsignal(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)  # Trio and Spark have handlers of their own
        else:  # a background job of a shell ignores it
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    before = signal.getsignal(signal.SIGTERM)
    is_ours = threading.current_thread() is threading.main_thread() and before == signal.SIG_DFL
    if is_ours:
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield came
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _carried_out(name: str, program: Program, words: Sequence[str]) -> int:
    try:
        with _output_watched():
            status = _run(name, program, words)
            flush()  # an error of the flush at exit would have no message of ours
    except (KeyboardInterrupt, BaseExceptionGroup) as error:
        if not is_interrupt(error):
            raise
        return fail(name, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        discard_output()
        return USAGE
    except _OutputError as error:
        discard_output()
        return fail(name, f"cannot write the output: {error.strerror or error}", USAGE)
    return status


def _run(name: str, program: Program, words: Sequence[str]) -> int:
    try:
        call = parse(program, f"disque-trio {name}", words, os.environ)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    assert call.command.run is not None
    try:
        return call.command.run(call.options)
    except (BrokenPipeError, _OutputError):
        raise
    except UsageError as error:
        text, status = str(error), USAGE
    except (DisqueError, NotDoneError) as error:
        text, status = str(error), FAILED
    except OSError as error:
        what = error.filename or getattr(call.options, "subject", name)
        text, status = f"{what}: {error.strerror or error}", USAGE
    say_error(call.options, text)
    return fail(name, text, status)


def say_error(options: object, text: str) -> None:
    """For programs, with `--json`: why a command has not done it, as the last value of the
    output."""
    if getattr(options, "is_json", False):
        say_json({"error": text})


def fail(name: str, text: str, status: int = FAILED) -> int:
    """Report why a command has not done it. The exit status."""
    for line in text.splitlines():
        complain(f"disque-trio {name}: {line}")
    return status


def cannot_write(path: str | Path, error: OSError) -> UsageError:
    """Why a file cannot be written."""
    if isinstance(error, FileNotFoundError):
        check_folder(path)
    return UsageError(f"cannot write {path}: {error.strerror or error}")


def check_folder(path: str | Path) -> None:
    """Raises `UsageError` if there is no folder for a file to be written."""
    folder = Path(path).parent
    if not folder.exists():
        raise UsageError(f"cannot write {path}: the directory {folder} does not exist")


class _OutputError(OSError):
    """The output cannot be written. Errors of streams have no name that would show it."""


class _Output:
    """A stream whose errors can be told from those of other files."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: Any) -> Any:
        """As the stream does."""
        with _named():
            return self._stream.write(text)

    def flush(self) -> None:
        """As the stream does."""
        with _named():
            self._stream.flush()


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _OutputError(*error.args) from error


@contextmanager
def _output_watched() -> Iterator[None]:
    before = sys.stdout
    if before is not None:  # it is None if the caller has closed it
        sys.stdout = cast("TextIO", _Output(before))
    try:
        yield
    finally:
        sys.stdout = before


def duration(seconds: float) -> str:
    """Such as 0.3s, 12s, 5m, 3h or 2d."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"


# Options that several commands have.


JOB_ID: Final = matching(
    r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}",
    "the id of a job, such as D-8177b338-…-05a1",
    "ID",
)


def json_switch(about: str = "results as JSON") -> Any:
    """The option `--json`."""
    return switch("--json", about)


def _setting(word: str) -> tuple[str, str]:
    name, sign, value = word.partition("=")
    if not sign or not name.startswith("spark."):
        raise ValueError
    return name, value


def spark_settings() -> Any:
    """The option `--spark-conf`: pairs of a name and its value."""
    kind = Kind("a setting of Spark: spark.NAME=VALUE", _setting, "NAME=VALUE")
    about = "a setting of Spark, such as spark.executor.memory=2g"
    return option("--spark-conf", kind, about, is_repeated=True)
