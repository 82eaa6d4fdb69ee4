"""Describes errors for reasons and logs. Texts and classes of errors are code of users; nothing
here raises, whatever they do."""

import sys
import traceback
from collections.abc import Iterator
from pathlib import PurePath
from types import FrameType, TracebackType
from typing import Final, TypeGuard, TypeVar

from disque_trio.terminal.counting import counted
from disque_trio.terminal.escapes import printable
from disque_trio.worker.exceptions import Dead, JobTimeoutError, Retry, Snooze

Kind = TypeVar("Kind", bound=BaseException)

LONGEST_TEXT: Final = 500
"""Characters of an error's text in the reason of a dead job."""
PLACE: Final = "__disque_trio_place__"
"""The attribute, on an error from another process, that contains the place where it was raised."""
_LONGEST_PART: Final = 10_000
_LONGEST_TRACE: Final = 200_000
"""Characters of a traceback in the log: an error may have any text."""
_LONGEST_HEAD: Final = 1000
_LONGEST_PLACE: Final = 200
_LONGEST_END: Final = 2048
"""Bytes of a report's first two lines, and of the end of its traceback."""
_FIRST_LINES: Final = 60
_LAST_LINES: Final = 240
"""The first and last lines of a longer traceback that the log contains: an error may have any
number of causes."""
_CAUSE: Final = BaseException.__dict__["__cause__"].__get__
_TRACEBACK: Final = BaseException.__dict__["__traceback__"].__get__
_QUALNAME: Final = type.__dict__["__qualname__"].__get__
_LIBRARIES: Final = sys.stdlib_module_names | {"disque_trio"}
_INSTALLED: Final = frozenset(("site-packages", "dist-packages"))
_MADE: Final = ("<attrs ", "<frozen ", "<string>")
"""Prefixes of file names that are not files, besides those of shells and notebooks."""
_STOPPED: Final = "coroutine raised StopIteration"
"""The text of the `RuntimeError` that Python puts in place of such an error."""


def is_of(error: BaseException, kinds: type[Kind] | tuple[type[Kind], ...]) -> TypeGuard[Kind]:
    """`isinstance` by the actual class of an error, ignoring `__class__`."""
    return issubclass(type(error), kinds)


def meant(error: BaseException) -> BaseException:
    """The error that a handler has raised: Python replaces a `StopIteration` of a coroutine by a
    `RuntimeError`."""
    if type(error) is RuntimeError and error.args == (_STOPPED,):
        return cause_of(error) or error
    return error


def cause_of(error: BaseException) -> BaseException | None:
    """The cause of an error, even if its class overrides the attribute."""
    found: BaseException | None = _CAUSE(error)
    return found


def traceback_of(error: BaseException) -> TracebackType | None:
    """The traceback of an error, even if its class overrides the attribute."""
    found: TracebackType | None = _TRACEBACK(error)
    return found


def leaves(error: BaseException) -> list[BaseException]:
    """The errors in a group and its nested groups; or this error, if it is no group. Never
    raises."""
    try:
        return list(_leaves(error))
    except BaseException:  # a group of a class of users
        return [error]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if is_of(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield meant(error)


def name_of(kind: type) -> str:
    """The name of a class, even if its metaclass overrides the attribute."""
    found: str = _QUALNAME(kind)
    return found


def text_of(error: BaseException) -> str:
    """The text of an error, cut to `LONGEST_TEXT`. Never raises, even if `__str__` does."""
    try:
        return str.__getitem__(str(error), slice(LONGEST_TEXT))
    except BaseException as broken:  # `__str__` is code of users
        return f"(its text cannot be computed: {name_of(type(broken))})"


def type_and_text(error: BaseException) -> str:
    """The type of an error, and its text if it has one."""
    return f"{name_of(type(error))}: {text_of(error)}".removesuffix(": ")


def line_of(error: BaseException) -> str:
    """The text on one line; control characters and lone surrogates are escaped."""
    return printable(text_of(error))


def describe(error: BaseException) -> str:
    """The error in one line: its class, its text, and where it was raised. Never raises."""
    first, *others = leaves(error)
    text = line_of(first)
    if not is_of(first, (Dead, Retry, Snooze)):
        text = f"{printable(name_of(type(first)))}: {text}".removesuffix(": ")
        text += "" if is_of(first, JobTimeoutError) else _where(first)  # raised by this library
    return f"{text}, and {len(others)} more" if others else text


def trace_of(error: BaseException) -> str:
    """The error with its traceback, as Python prints it. Long texts and long chains of causes are
    cut. Never raises."""
    try:
        parts = traceback.format_exception(error)
    except BaseException as broken:  # source lines and texts of errors are code of users
        unmade = f"(its causes and text cannot be shown: {name_of(type(broken))})"
        return f"{_plain_trace(error)}{describe(error)}\n{unmade}\n"
    lines = "".join(map(_cut, parts)).splitlines(keepends=True)
    left_out = len(lines) - _FIRST_LINES - _LAST_LINES
    if left_out > 0:
        lines[_FIRST_LINES:-_LAST_LINES] = [f"… {counted(left_out, 'line')} …\n"]
    return "".join(lines)[-_LONGEST_TRACE:]


def report_of(error: BaseException) -> bytes:
    """The error for NACK ERROR, in UTF-8: a line with class and text, a line with the place, and
    the end of the traceback. Never raises."""
    first = leaves(error)[0]
    head = f"{printable(name_of(type(first)))}: {line_of(first)}".removesuffix(": ")
    lines = _start(head, _LONGEST_HEAD), _start(printable(place_of(first)), _LONGEST_PLACE)
    trace = escaped(trace_of(error)).encode()[-_LONGEST_END:].decode(errors="ignore")
    return "\n".join([*lines, trace]).rstrip().encode()


def _start(text: str, most: int) -> str:
    return text.encode(errors="backslashreplace")[:most].decode(errors="ignore")


def _plain_trace(error: BaseException) -> str:
    """The traceback alone; empty if it cannot be shown either."""
    try:
        found = "".join(traceback.format_tb(traceback_of(error), limit=-_FIRST_LINES))
    except BaseException:
        return ""
    return f"Traceback (most recent call last):\n{found}" if found else ""


def _cut(part: str) -> str:
    return part if len(part) <= _LONGEST_PART else f"{part[:_LONGEST_PART]}…\n"


def escaped(text: str) -> str:
    """The text with lone surrogates escaped, so that it can be encoded in UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def place_of(error: BaseException) -> str:
    """Where an error was raised: the innermost line of the user's code, or of any code if there is
    none. It omits the text of the line, because reading that may fail. Empty if the error was not
    raised."""
    try:
        place = vars(error).get(PLACE)
        if isinstance(place, str):
            return place
        lines = list(_lines(traceback_of(error)))
        frame, line = next((each for each in reversed(lines) if _is_own(each[0])), lines[-1])
    except BaseException:  # nothing was raised, or a class of users
        return ""
    code = frame.f_code
    file = "/".join(PurePath(code.co_filename).parts[-2:])
    return f"{file}:{line} in {code.co_name}"


def _where(error: BaseException) -> str:
    place = place_of(error)
    return f" ({printable(place)})" if place else ""


def _lines(trace: TracebackType | None) -> Iterator[tuple[FrameType, int | None]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _is_own(frame: FrameType) -> bool:
    """Is it code of users, and not of a library or generated by one?"""
    module, file = str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename
    top = module.partition(".")[0]
    return not (
        top in _LIBRARIES or file.startswith(_MADE) or _INSTALLED & set(PurePath(file).parts)
    )
