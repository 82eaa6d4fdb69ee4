"""Converts the arguments of a function to the parts of a body and back, and checks them against its
annotations."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from inspect import Parameter, Signature
from typing import Any, Final, get_type_hints

import attrs

from disque_trio.worker import codec
from disque_trio.worker.codec import Envelope, Form, Part
from disque_trio.worker.comparing import difference, is_equal
from disque_trio.worker.describing import type_and_text
from disque_trio.worker.envelope import BadBodyError, NotEncodableError

Read = Callable[[Part], Any]
Packed = tuple[list[Part], dict[str, Part]]

_AS_THEY_ARE: Final = frozenset((bool, bytes, float, int, str))
"""Types whose values arrive unchanged, if they can be encoded."""
_BY_PLACE: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class UnfitTypeError(TypeError):
    """An annotation whose values a body cannot hold, or that refers to an undefined name."""


@attrs.define(eq=False, slots=False)
class Arguments:
    """The parameters of a task. Annotations are resolved on first use, because they may refer to
    names that are defined later."""

    task: str
    _fn: Callable[..., Any]
    _skip: int = 0
    """The number of leading parameters that are not in the body, such as the job."""
    _has_changed_result: bool = attrs.field(init=False, default=False)

    @cached_property
    def _signature(self) -> Signature:
        found = inspect.signature(self._fn)
        parameters = list(found.parameters.values())[self._skip :]
        return found.replace(parameters=parameters)

    @cached_property
    def _types(self) -> dict[str, Any]:
        try:
            known = get_type_hints(self._fn, include_extras=True)
        except NameError as error:
            raise UnfitTypeError(f"{self.task}: an annotation is not defined: {error}") from error
        found = {}
        for name in self._signature.parameters:
            found[name] = known.get(name, Any)
            try:
                codec.check(found[name])
            except TypeError as error:
                raise UnfitTypeError(f"{self.task}: argument {name}: {error}") from error
        return found

    @cached_property
    def _is_complete(self) -> dict[str, bool]:
        return {name: codec.is_complete(kind) for name, kind in self._types.items()}

    @cached_property
    def read_result(self) -> Read:
        """Decodes a return value of the function from JSON. Raises `UnfitTypeError` for an
        annotation whose values a body cannot hold."""
        try:
            codec.check(self._result_type)
        except TypeError as error:
            raise UnfitTypeError(f"{self.task}: result: {error}") from error
        return codec.reader(self._result_type, "json")

    @cached_property
    def _result_type(self) -> Any:
        kind = get_type_hints(self._fn, include_extras=True).get("return", Any)
        return Any if kind is object else kind

    @cached_property
    def _is_result_complete(self) -> bool:
        return codec.is_complete(self._result_type)

    def first_change(self, result: object, part: Part) -> str | None:
        """How a result changes on its way, if the annotation does not describe its type completely.
        Returns None if it does not change, if it cannot be decoded, and after the first change
        found."""
        if result is None or self._has_changed_result:
            return None
        try:
            change = (
                None if self._is_result_complete else difference(result, self.read_result(part))
            )
        except Exception:  # the waiting client gets this error; values of users may raise anything
            return None
        self._has_changed_result = change is not None
        return change

    @cached_property
    def _readers(self) -> dict[Form, dict[str, Read]]:
        return {
            "json": {name: codec.reader(kind, "json") for name, kind in self._types.items()},
            "msgpack": {name: codec.reader(kind, "msgpack") for name, kind in self._types.items()},
        }

    @cached_property
    def _by_place(self) -> dict[Form, list[Read]]:
        """Readers of the positional parameters."""
        parameters = self._signature.parameters.values()
        names = [each.name for each in parameters if each.kind in _BY_PLACE]
        return {form: [readers[name] for name in names] for form, readers in self._readers.items()}

    @cached_property
    def _fewest(self) -> int:
        parameters = self._signature.parameters.values()
        return sum(each.kind in _BY_PLACE and each.default is each.empty for each in parameters)

    @cached_property
    def _most(self) -> int:
        """The largest number of positional arguments in a call without keyword arguments; -1 if
        such a call is never complete."""
        kinds = [
            (each.kind, each.default is each.empty) for each in self._signature.parameters.values()
        ]
        if any(is_needed and kind not in _BY_PLACE for kind, is_needed in kinds):
            return -1
        return sum(kind in _BY_PLACE for kind, _ in kinds)

    def check(self) -> None:
        """Raise `UnfitTypeError` for an annotation whose values a body cannot hold."""
        self._by_place  # noqa: B018  # cached

    def check_declared(self, form: Form) -> None:
        """As `check`, but names in annotations may still be undefined. For JSON, also check the
        keys of dictionaries."""
        try:
            self.check()
        except UnfitTypeError as error:
            if not isinstance(error.__cause__, NameError):
                raise
            return
        if form == "json":
            for name, kind in self._types.items():
                try:
                    codec.check_keys(kind)
                except TypeError as error:
                    raise UnfitTypeError(f"{self.task}: argument {name}: {error}") from error

    def names(self, parameter: str) -> bool:
        """Is there a parameter of this name? Names that only `**kwargs` accepts do not count."""
        found = self._signature.parameters.get(parameter)
        return found is not None and found.kind is not Parameter.VAR_KEYWORD

    def accept(self, *args: Any, **kwargs: Any) -> bool:
        """Does the function accept this number of arguments and these names?"""
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError:
            return False
        return True

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments by parameter name, including defaults. Raises `TypeError` if they do not
        fit."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def pack(
        self,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        form: Form,
        missing: int = 0,
        *,
        is_partial: bool = False,
    ) -> Packed:
        """The encoded arguments of a call. The first `missing` arguments are supplied later, and
        with `is_partial` any named ones, too. Raises `NotEncodableError`, which names the
        argument."""
        count = missing + len(args)
        if args and not kwargs and self._fewest <= count <= self._most:  # the usual case
            names = list(self._types)[missing:count]
            return [self._part(*each, form) for each in zip(names, args, strict=True)], {}
        try:
            bind = self._signature.bind_partial if is_partial else self._signature.bind
            bound = bind(*[None] * missing, *args, **kwargs)
        except TypeError as error:
            raise NotEncodableError(f"{self.task}: {error}") from error
        names = self._names(bound.args)
        places = [
            self._part(name, value, form)
            for name, value in list(zip(names, bound.args, strict=True))[missing:]
        ]
        return places, {
            name: self._part(self._parameter(name), value, form)
            for name, value in bound.kwargs.items()
        }

    def _part(self, name: str, value: Any, form: Form) -> Part:
        kind = self._types[name]
        try:
            part = codec.part(value, form)
            if type(value) is kind and kind in _AS_THEY_ARE:  # the usual case
                return part
            arrives = self._readers[form][name](part)
            if is_equal(value, arrives):
                return part
            change = difference(value, arrives, form if self._is_complete[name] else None)
        except codec.BAD_INPUT as error:
            is_in_msgpack = isinstance(error, codec.NotInJSONError)
            advice = "; App(form='msgpack') takes it" if is_in_msgpack else ""
            raise NotEncodableError(f"{self.task}: argument {name}: {error}{advice}") from error
        except Exception as error:  # values of users may raise anything
            raise NotEncodableError(
                f"{self.task}: argument {name}: {type_and_text(error)}"
            ) from error
        if change is not None:
            advice = "" if self._is_complete[name] else "; annotate the argument with its type"
            raise NotEncodableError(f"{self.task}: argument {name}: {change}{advice}")
        return part

    def unpack(self, envelope: Envelope) -> tuple[Sequence[Any], dict[str, Any]]:
        """The decoded arguments of a call. Raises `BadBodyError` with the path in the body."""
        parts = envelope.args
        readers = self._by_place[envelope.form]
        if not envelope.kwargs and self._fewest <= len(parts) <= self._most:
            try:
                return [read(part) for read, part in zip(readers, parts, strict=False)], {}
            except Exception:  # `_unpack_each` finds it again, with its path
                pass
        return self._unpack_each(envelope)

    def _unpack_each(self, envelope: Envelope) -> tuple[Sequence[Any], dict[str, Any]]:
        try:
            self._signature.bind(*envelope.args, **envelope.kwargs)
        except TypeError as error:
            raise BadBodyError(f"invalid arguments: {error}") from error
        readers = self._readers[envelope.form]
        args = [
            _read(readers[name], part, f"$.args[{place}]")
            for place, (name, part) in enumerate(
                zip(self._names(envelope.args), envelope.args, strict=True)
            )
        ]
        kwargs = {
            name: _read(readers[self._parameter(name)], part, f"$.kwargs.{name}")
            for name, part in envelope.kwargs.items()
        }
        return args, kwargs

    def _names(self, args: Sequence[Any]) -> list[str]:
        """The parameter of each positional argument."""
        parameters = self._signature.parameters.values()
        names = [each.name for each in parameters if each.kind in _BY_PLACE][: len(args)]
        rest = [each.name for each in parameters if each.kind is Parameter.VAR_POSITIONAL]
        return names + rest * (len(args) - len(names))

    def _parameter(self, name: str) -> str:
        """The parameter of a keyword argument."""
        known = self._signature.parameters.get(name)
        if known is not None and known.kind not in (
            Parameter.VAR_KEYWORD,
            Parameter.VAR_POSITIONAL,
            Parameter.POSITIONAL_ONLY,
        ):
            return name
        return next(
            each.name
            for each in self._signature.parameters.values()
            if each.kind is Parameter.VAR_KEYWORD
        )


def _read(read: Read, part: Part, path: str) -> Any:
    try:
        return read(part)
    except Exception as error:  # types of users may raise anything
        raise BadBodyError(f"invalid arguments: {_at(error, path)}") from error


def _at(error: Exception, path: str) -> str:
    """The error's text with the path from the root of the body; msgspec's path starts at the
    part."""
    text, _, inner = str(error).partition(" - at `$")
    return f"{path}{inner.rstrip('`')}: {text}"
