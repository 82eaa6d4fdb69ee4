"""Messages between a worker and its processes: pickled objects, each preceded by its length.

Pickle is safe here, because a worker reads only messages of processes that it started itself.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from importlib import import_module
from itertools import islice
from types import WrapperDescriptorType
from typing import Any, Final

import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.worker.describing import PLACE, describe, place_of, text_of, trace_of
from disque_trio.worker.describing import name_of as name_of_class

LENGTH: Final = 8
"""The size of the length before each object, in bytes."""


class RemoteError(DisqueError):
    """A function in a process raised an error that cannot be sent to the worker; the text describes
    it."""


class NotNamedError(DisqueError):
    """A function cannot be found by its name in another process."""


@attrs.frozen
class Order:
    """Run a function of a module."""

    module: str
    name: str
    depth: int
    """How many of its decorators are skipped."""
    args: Sequence[Any]
    kwargs: Mapping[str, Any]


@attrs.frozen
class Result:
    """The return value of a function."""

    value: Any


@attrs.frozen
class Raised:
    """The error of a function, in parts: creating it may require other arguments than it keeps."""

    kind: type[BaseException]
    args: tuple[Any, ...]
    fields: dict[str, Any]
    trace: str
    place: str = ""
    """Where it was raised (`describing.place_of`)."""

    def error(self) -> BaseException:
        """The exception, with the traceback as a note."""
        if _is_plain(self.kind):
            error = self.kind(*self.args)
        else:
            error = self.kind.__new__(self.kind, *self.args)
            error.args = self.args
        error.__dict__.update(self.fields)
        error.__dict__[PLACE] = self.place
        error.add_note(f"in a process of the worker:\n{self.trace}")
        return error


def packed(message: object) -> bytes:
    """A message with its length. Raises errors of parts that cannot be pickled."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(LENGTH, "big") + data


def answer(outcome: Result | BaseException) -> bytes:
    """The frame with an outcome."""
    if isinstance(outcome, Result):
        try:
            return packed(outcome)
        except BaseException as error:  # classes of users pickle themselves
            text = f"the result of the function cannot be returned: {describe(error)}"
            return packed(Raised(RemoteError, (text,), {}, ""))
    trace, place = trace_of(outcome), place_of(outcome)
    try:
        kind = type(outcome)
        args: Any = outcome.__reduce__()[1] if _is_plain(kind) else outcome.args
        frame = packed(Raised(kind, args, vars(outcome), trace, place))
        pickle.loads(frame[LENGTH:]).error()
    except BaseException:
        text = f"{name_of_class(type(outcome))}: {text_of(outcome)}".removesuffix(": ")
        return packed(Raised(RemoteError, (text,), {}, trace, place))
    return frame


def _is_plain(kind: type[BaseException]) -> bool:
    """Is the class created by a constructor of Python, from the arguments in `args`?"""
    return isinstance(kind.__init__, WrapperDescriptorType)


def found(module: str, name: str, depth: int) -> Callable[..., Any]:
    """The function with that name, without `depth` decorators."""
    return next(islice(_layers(module, name), depth, None))


def name_of(fn: Callable[..., Any]) -> tuple[str, str, int]:
    """The module of a function, its name there, and the number of decorators around it, such as
    that of its task. Raises `NotNamedError`."""
    module, name = getattr(fn, "__module__", None), getattr(fn, "__qualname__", "")
    try:
        if module and module != "__main__":
            for depth, function in enumerate(_layers(module, name)):
                if function is fn:
                    return module, name, depth
    except (ImportError, AttributeError):
        pass
    raise NotNamedError(
        f"{name or fn!r} of {module} cannot run in a process: it must be a function of a module, "
        "not of a script or of another function"
    )


def _layers(module: str, name: str) -> Iterator[Callable[..., Any]]:
    """The object with that name, then each function that its decorators wrap."""
    function: Any = reduce(getattr, name.split("."), import_module(module))
    yield function
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
        yield function
