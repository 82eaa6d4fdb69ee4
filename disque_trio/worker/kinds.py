"""The kinds of values that options accept. `check_kinds` rejects others at the declaration."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from inspect import iscoroutinefunction
from typing import Any, Final

from disque_trio.client.address import Cluster
from disque_trio.client.command import is_encodable, word
from disque_trio.statemachine.base import LONGEST_PERIOD_S
from disque_trio.worker.checks import is_number, is_whole, shown
from disque_trio.worker.policies import Policy

_MILLISECOND: Final = 0.001
Kind = tuple[Callable[[Any], bool], str]
"""A predicate of values, and the description for error messages."""


def _is_utf8(value: object) -> bool:
    return isinstance(value, str) and is_encodable(value, "strict")


def _is_name(value: object) -> bool:
    """Names may contain bytes that are not UTF-8, as file names may."""
    return isinstance(value, str) and is_encodable(value, "surrogateescape")


def _is_policy(value: object) -> bool:
    """Is it a policy, or a function that can be called with a job and an error?"""
    if isinstance(value, Policy):
        return True
    return takes(value, 2) and not isinstance(value, type) and not iscoroutinefunction(value)


def takes(value: object, count: int) -> bool:
    """Can it be called with `count` arguments?"""
    if not callable(value):
        return False
    try:
        inspect.signature(value).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True


def or_none(kind: Kind) -> Kind:
    """A value of this kind, or None."""
    is_one, name = kind
    return lambda value: value is None or is_one(value), f"{name}, or None"


def one_of(*known: str) -> Kind:
    """One of these strings."""
    return (
        lambda value: isinstance(value, str) and value in known,
        f"one of {', '.join(map(repr, known))}",
    )


def whole(least: int | None = None, most: int | None = None) -> Kind:
    """A whole number within bounds."""

    def is_one(value: object) -> bool:
        return (
            is_whole(value)
            and (least is None or least <= value)
            and (most is None or value <= most)
        )

    if most is not None:
        return is_one, f"a whole number from {least} to {most}"
    return is_one, "a whole number" if least is None else f"a whole number, {least} or more"


def whole_seconds(most: int) -> Kind:
    """A number of seconds that nodes can store; its lower bound depends on other options."""
    return (
        lambda value: is_whole(value) and value <= most,
        f"a whole number of seconds, at most {most}",
    )


def unique_for(most: int) -> Kind:
    """How long a key is reserved; nodes count in milliseconds."""
    return (
        lambda value: (
            value == "until-done"
            or (is_number(value) and (value == 0 or _MILLISECOND <= value <= most))
        ),
        f"'until-done' or a number of seconds, from {_MILLISECOND} to {most}",
    )


def group(most: int) -> Kind:
    """The name of a group, of up to `most` bytes, or a function that returns it."""

    def is_one(value: object) -> bool:
        if isinstance(value, str):
            return _is_name(value) and 0 < len(word(value)) <= most
        return callable(value) and not iscoroutinefunction(value)

    return is_one, f"text of 1 to {most} bytes, or a function that returns it"


TEXT: Final[Kind] = _is_utf8, "text without lone surrogates"
NAME: Final[Kind] = _is_name, TEXT[1]
SECONDS: Final[Kind] = is_number, "a number of seconds"
DELAY: Final[Kind] = is_number, "a number of seconds, or a timedelta"
DATETIME: Final[Kind] = lambda value: isinstance(value, datetime), "a datetime"
FLAG: Final[Kind] = lambda value: isinstance(value, bool), "True or False"
UNIQUE: Final[Kind] = (
    lambda value: isinstance(value, bool) or _is_utf8(value),
    f"{TEXT[1]}, or True",
)
HEADERS: Final[Kind] = (
    lambda value: isinstance(value, Mapping) and all(map(_is_utf8, value)),
    f"a mapping of names, which are {TEXT[1]}",
)
NAMES: Final[Kind] = (
    lambda value: isinstance(value, Iterable) and not isinstance(value, str),
    "a list of names",
)
POLICY: Final[Kind] = _is_policy, "a policy, such as Backoff(), or a function of a job and an error"


def _are_executors(value: object) -> bool:
    """Are these numbers of threads, or objects with the method of `executors.dispatch.Executor`?"""
    return isinstance(value, Mapping) and all(
        _is_utf8(name)
        and name not in ("loop", "thread", "process")
        and ((is_whole(each) and each > 0) or takes(getattr(each, "run", None), 4))
        for name, each in value.items()
    )


OF_APP: Final[Mapping[str, Kind]] = {
    "url": (lambda value: isinstance(value, str | Cluster), "the address of nodes, as text"),
    "lifespan": or_none((lambda value: takes(value, 0), "a function without arguments")),
    "form": one_of("json", "msgpack"),
    "max_body": whole(1),
    "max_decoded": whole(1),
    "executors": (_are_executors, "executors by new names: a number of threads, or run(…)"),
    "id": TEXT,
    "deadline": (
        lambda value: is_whole(value) and 0 < value <= LONGEST_PERIOD_S,
        f"a whole number of seconds, from 1 to {LONGEST_PERIOD_S}",
    ),
}
"""The kinds of other arguments of an app and its methods."""


def check_kinds(options: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
    """Raise `ValueError` for a value of another kind."""
    for name in options.keys() & kinds.keys():
        value, (is_one, kind) = options[name], kinds[name]
        if not is_one(value):
            raise ValueError(f"{name}={shown(value)} must be {kind}")


def check_function(name: str, fn: Any) -> None:
    """Raise `ValueError` if `fn` cannot be a task."""
    if isinstance(fn, str):
        raise ValueError(
            f"task {name}: {shown(fn)} is not a function; set the name with name={shown(fn)}"
        )
    # Python 3.14 regards a `partial` as a routine, but it has no name, module or docstring.
    is_routine = inspect.isroutine(fn) and not isinstance(fn, functools.partial)
    if not callable(fn) or not (is_routine or inspect.isclass(fn)):
        raise ValueError(f"task {name}: {shown(fn)} is not a function: declare one that calls it")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise ValueError(
            f"task {name} is a generator, which the worker would not exhaust: return what it "
            "yields, or add a job for each; an `async def` of a task may yield checkpoints"
        )
