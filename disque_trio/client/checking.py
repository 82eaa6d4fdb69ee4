"""Checks arguments of commands by the annotations of their functions, before anything is sent."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, Final, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import attrs

from disque_trio.client.command import is_encodable

Asked = ParamSpec("Asked")
Made = TypeVar("Made")

_NAMES: Final = {
    str: "text",
    bytes: "bytes",
    float: "a number",
    int: "an int",
    bool: "True or False",
    NoneType: "None",
}
_BUFFERS: Final = frozenset((bytearray, memoryview))


@attrs.frozen
class _Check:
    """The check of a value against an annotation."""

    what: str
    """The command and the argument."""
    kinds: frozenset[Any]
    values: tuple[Any, ...] = ()
    """The allowed strings, if they are limited."""
    is_sequence: bool = False
    """Is it a sequence of values of these types?"""
    is_rest: bool = False
    """Is it one of any number of positional arguments?"""
    at_once: frozenset[Any] = attrs.field(init=False)
    """Types of values that need no further check."""
    _is_time: bool = attrs.field(init=False)

    @at_once.default
    def _simple(self) -> frozenset[Any]:
        if self.values or self.is_sequence:
            return self.kinds & {NoneType}
        return self.kinds - {float}

    @_is_time.default
    def _has_numbers_only(self) -> bool:
        return self.kinds <= {float, NoneType}

    def __call__(self, value: Any) -> None:
        """Raise `TypeError` or `ValueError` for an invalid value."""
        kind = type(value)
        if self._is_time and (kind is int or kind is float) and 0 <= value < math.inf:
            return
        if self.is_sequence and isinstance(value, Sequence) and not isinstance(value, str | bytes):
            for each in value:
                attrs.evolve(self, is_sequence=False)(each)
        elif self.is_sequence or not self._fits(value):
            raise TypeError(
                f"{self.what} is of type {kind.__qualname__}: it must be {self._wanted}"
                f"{self._advice(value)}"
            )
        elif self._is_time and value is not None and not 0 <= value < math.inf:
            raise ValueError(f"{self.what} is {value}: it must be 0 or more seconds")
        elif self.values and isinstance(value, str) and value not in self.values:
            known = ", ".join(map(repr, self.values))
            raise ValueError(f"{self.what} is {value!r:.60}: it must be one of {known}")

    def _fits(self, value: Any) -> bool:
        if isinstance(value, bool):
            return bool in self.kinds
        if isinstance(value, int) and float in self.kinds:
            return True
        if bytes in self.kinds and _has_buffer(value):
            return True
        return isinstance(value, tuple(self.kinds))

    @property
    def _wanted(self) -> str:
        known = [name for kind, name in _NAMES.items() if kind in self.kinds]
        known += [f"a {kind.__name__}" for kind in self.kinds - _NAMES.keys() - _BUFFERS]
        wanted = " or ".join(sorted(known, key=lambda each: each == "None"))
        return f"a list of {wanted}" if self.is_sequence else wanted

    def _advice(self, value: Any) -> str:
        is_many = self.is_rest and isinstance(value, list | tuple | set | frozenset)
        return "; put * before it to pass each item" if is_many else ""


def _not_sent(arguments: Iterable[tuple[_Check, Any]]) -> Iterator[ValueError]:
    """The error for the first argument with text that cannot be encoded."""
    for check, value in arguments:
        for each in [value] if isinstance(value, str) else value if check.is_sequence else []:
            if isinstance(each, str) and not is_encodable(each, "surrogateescape"):
                yield ValueError(
                    f"{check.what} is {each!r:.60}: UTF-8 cannot encode its lone surrogate"
                )


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _check(what: str, parameter: Parameter) -> _Check:
    annotation, is_sequence, values = parameter.annotation, False, tuple[Any, ...]()
    kinds: list[Any] = []
    is_union = get_origin(annotation) in (Union, UnionType)
    for each in get_args(annotation) if is_union else (annotation,):
        kinds.append(each)
        if get_origin(each) is Sequence:
            is_sequence = True
            kinds[-1:] = get_args(each)
        elif get_origin(each) is Literal:
            values = get_args(each)
            kinds[-1:] = [str]
    is_rest = parameter.kind is Parameter.VAR_POSITIONAL
    return _Check(what, frozenset(kinds), values, is_sequence, is_rest)


class _Checks:
    """The checks of a function, created when it is first called."""

    def __init__(self, make: Callable[..., Any]) -> None:
        parameters = signature(make).parameters.values()
        checks = [_check(f"{make.__name__}: {each.name}", each) for each in parameters]
        self.named = {each.name: check for each, check in zip(parameters, checks, strict=True)}
        self.by_place = [
            self.named[each.name] for each in parameters if each.kind is not Parameter.KEYWORD_ONLY
        ]
        self.rest = next((each for each in checks if each.is_rest), None)

    def of_places(self, count: int) -> Sequence[_Check]:
        """The checks for this number of positional arguments."""
        if self.rest is None:
            return self.by_place
        return [*self.by_place, *[self.rest] * (count - len(self.by_place))]


def checked(make: Callable[Asked, Made]) -> Callable[Asked, Made]:
    """The function with checks of its arguments: raises `TypeError` with the argument and its type
    if it does not fit the annotation, and `ValueError` for an invalid value."""
    found: list[_Checks] = []

    @wraps(make)
    def run(*args: Asked.args, **options: Asked.kwargs) -> Made:
        checks = found[0] if found else _Checks(make)
        found[:] = (checks,)
        for check, value in zip(checks.of_places(len(args)), args, strict=False):
            if type(value) not in check.at_once:
                check(value)
        named = checks.named
        for name, value in options.items():
            if name in named and type(value) not in named[name].at_once:
                named[name](value)
        try:
            return make(*args, **options)
        except UnicodeEncodeError as error:
            arguments = [*zip(checks.of_places(len(args)), args, strict=False)]
            arguments += [(named[name], value) for name, value in options.items()]
            raise next(_not_sent(arguments), error) from None

    return run
