"""What a worker and its processes say to each other: objects, each behind its length.

Only a worker and the processes that it has started itself read them, so they are pickled.
"""

import pickle
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from importlib import import_module
from typing import Any, Final

import attrs

from disque_trio.client.errors import DisqueError

LENGTH: Final = 8
"""Bytes before each object."""


class RemoteError(DisqueError):
    """A function in a process raised what cannot be brought here; the text describes it."""


class NotNamedError(DisqueError):
    """A function cannot be found by its name in another process."""


@attrs.frozen
class Order:
    """Run a function of a module."""

    module: str
    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]


@attrs.frozen
class Result:
    """What it has returned."""

    value: Any


@attrs.frozen
class Raised:
    """What it has raised, in parts: to make it anew may need other arguments than it keeps."""

    kind: type[BaseException]
    args: tuple[Any, ...]
    fields: dict[str, Any]
    trace: str

    def error(self) -> BaseException:
        """The exception, with the traceback as a note."""
        error = self.kind.__new__(self.kind, *self.args)
        error.args = self.args
        error.__dict__.update(self.fields)
        error.add_note(f"in a process of the worker:\n{self.trace}")
        return error


def packed(message: object) -> bytes:
    """A message with its length. Raises whatever its parts raise that cannot be packed."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(LENGTH, "big") + data


def answer(outcome: Result | BaseException) -> bytes:
    """The frame that tells an outcome."""
    if isinstance(outcome, Result):
        try:
            return packed(outcome)
        except Exception as error:
            reason = RemoteError(f"the result of the function cannot be brought back: {error!r}")
            return packed(Raised(RemoteError, reason.args, {}, ""))
    trace = "".join(traceback.format_exception(outcome))
    try:
        frame = packed(Raised(type(outcome), outcome.args, vars(outcome), trace))
        pickle.loads(frame[LENGTH:]).error()
    except Exception:
        text = "".join(traceback.format_exception_only(outcome)).strip()
        return packed(Raised(RemoteError, (text,), {}, trace))
    return frame


def found(module: str, name: str) -> Callable[..., Any]:
    """The function of that name, without what decorators have put around it."""
    function: Any = reduce(getattr, name.split("."), import_module(module))
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function  # type: ignore[no-any-return]


def name_of(fn: Callable[..., Any]) -> tuple[str, str]:
    """Its module and its name there. Raises `NotNamedError`."""
    module, name = getattr(fn, "__module__", None), getattr(fn, "__qualname__", "")
    try:
        if module and module != "__main__" and found(module, name) is fn:
            return module, name
    except (ImportError, AttributeError):
        pass
    raise NotNamedError(
        f"{name or fn!r} of {module} cannot run in a process: it must be a function of a module, "
        "not of a script or of another function"
    )
