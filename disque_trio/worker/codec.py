"""Encodes values as JSON or msgpack, and decodes them by annotated types.

No other module of the package imports msgspec.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any, ClassVar, Final, Literal, TypeVar

import msgspec

Value = TypeVar("Value")
Form = Literal["json", "msgpack"]
Part = msgspec.Raw
"""An encoded value inside a body, which is decoded later."""

BAD_INPUT: Final = (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError)
"""The errors that decoding raises for invalid input."""


class NotInJSONError(ValueError):
    """A value that msgpack can encode and JSON cannot."""


class Envelope(msgspec.Struct, omit_defaults=True, frozen=True):
    """The content of a body (docs/worker.md, "Bodies")."""

    form: ClassVar[Form] = "json"
    """How its parts are encoded."""
    task: str
    args: list[Part] = []
    kwargs: dict[str, Part] = {}
    key: str | None = None
    headers: dict[str, Any] = {}
    v: int = 1


class PackedEnvelope(Envelope, omit_defaults=True, frozen=True):
    """The same, encoded in msgpack."""

    form: ClassVar[Form] = "msgpack"


class Coded(msgspec.Struct, omit_defaults=True, frozen=True):
    """A body that codecs have encoded (`codecs`)."""

    task: str
    codecs: list[str]
    """The names of the codecs, in the order in which they were applied."""
    body: bytes
    v: int
    key: str | None = None


class Step(msgspec.Struct, omit_defaults=True, frozen=True):
    """A call that is to be added later."""

    task: str
    key: str
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    options: dict[str, Any] = {}
    """The options that differ from the defaults of `Options`."""
    is_open: bool = False
    """Its first argument is the return value of the previous step."""
    once: str = ""
    """Its key on nodes, if other jobs may have the same `key`."""


class FlowStep(msgspec.Struct, omit_defaults=True, frozen=True):
    """A member of a flow: a job that is added when its predecessors are done."""

    steps: list[Step]
    """The member, and the later steps of its chain."""
    after: list[int] = []
    """The places of its predecessors, which are less than its own."""
    headers: dict[str, Any] = {}
    has_parents: bool = False
    """Does it receive the ids of its predecessors?"""


class Result(msgspec.Struct, omit_defaults=True, frozen=True):
    """The content of the body of a result."""

    key: str
    """The key of the job."""
    value: Part = Part(b"null")
    """JSON."""
    error: dict[str, str] | None = None
    """The error, if there is no value: type, text, traceback."""
    progress: tuple[float, str] | None = None
    """A progress report, if there is no value yet."""
    task: str = ""
    """For a result that nodes keep: the task that returned it."""
    next: str = ""
    """For a step of a chain, if nodes keep its result: the id of the next step's job, which has the
    result."""


def _to_plain(value: Any) -> Any:
    """Encode values of classes that msgspec does not support."""
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "model_dump"):  # a model of pydantic, which is not imported for it
        return value.model_dump(mode="json")
    for kind, plain in _PLAIN.items():
        if isinstance(value, kind):
            return plain(value)
    name = type(value).__qualname__
    if isinstance(value, tuple | frozenset | None):  # msgspec passes such values here only as keys
        raise NotInJSONError(f"JSON cannot have keys of type {name}")
    raise TypeError(f"a value of type {name} cannot be encoded")


_PLAIN: Final[dict[type, Callable[[Any], Any]]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
}
"""Converts instances of subclasses, which msgspec rejects, to plain values."""


def _from_plain(kind: type[Value], value: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, PurePath):
        return kind(value)
    return getattr(kind, "model_validate")(value)  # noqa: B009  # `check` has verified it


_READ_JSON: Final = msgspec.json.Decoder(Envelope)
_READ_RESULT: Final = msgspec.json.Decoder(Result)
_READ_MSGPACK: Final = msgspec.msgpack.Decoder(PackedEnvelope)
_READ_CODED: Final = msgspec.msgpack.Decoder(Coded)
_WRITE: Final[dict[Form, Any]] = {
    "json": msgspec.json.Encoder(enc_hook=_to_plain),
    "msgpack": msgspec.msgpack.Encoder(enc_hook=_to_plain),
}
_WRITE_SORTED: Final[dict[Form, Any]] = {
    "json": msgspec.json.Encoder(enc_hook=_to_plain, order="deterministic"),
    "msgpack": msgspec.msgpack.Encoder(enc_hook=_to_plain, order="deterministic"),
}
_PLAIN_JSON: Final = msgspec.json.Decoder()
_PLAIN_MSGPACK: Final = msgspec.msgpack.Decoder()


def read(body: bytes, form: Form) -> Envelope:
    """The envelope of a body. Raises one of `BAD_INPUT`."""
    return _READ_JSON.decode(body) if form == "json" else _READ_MSGPACK.decode(body)


def read_coded(body: bytes) -> Coded:
    """The content of a body that codecs have encoded. Raises one of `BAD_INPUT`."""
    return _READ_CODED.decode(body)


def read_result(body: bytes) -> Result:
    """The result of a body. Raises one of `BAD_INPUT`."""
    return _READ_RESULT.decode(body)


def read_step(value: Any) -> Step:
    """The step that was read from a header. Raises one of `BAD_INPUT`."""
    return msgspec.convert(value, Step)


def read_flow(value: Any) -> list[FlowStep]:
    """The members of a flow that were read from a body. Raises one of `BAD_INPUT`."""
    return msgspec.convert(value, list[FlowStep])


def read_plain(body: bytes, form: Form) -> Any:
    """The whole body, as dictionaries, lists, text and numbers. Raises one of `BAD_INPUT`."""
    return _PLAIN_JSON.decode(body) if form == "json" else _PLAIN_MSGPACK.decode(body)


def write(value: Any, form: Form) -> bytes:
    """The bytes of a value. Raises one of `BAD_INPUT` if it cannot be encoded."""
    written: bytes = _WRITE[form].encode(value)
    if form == "json" and b"null" in written:
        _check_finite(value)
    return written


def part(value: Any, form: Form) -> Part:
    """The value as a part of a body: equal values have the same bytes, regardless of the order in
    which sets and dictionaries were filled. Raises one of `BAD_INPUT`, or an error of the value
    itself."""
    try:
        written: bytes = _WRITE_SORTED[form].encode(value)
    except TypeError:
        # msgspec sorts neither dictionaries with keys other than text, nor sets without an order.
        written = _WRITE[form].encode(_sorted(value, form))
    if form == "json" and b"null" in written:
        _check_finite(value)
    return Part(written)


def plain(value: Any) -> Any:
    """The value as dictionaries, lists, text and numbers. Raises `TypeError`, or an error of the
    value itself."""
    return msgspec.to_builtins(value, enc_hook=_to_plain)


def _sorted(value: Any, form: Form) -> Any:
    """The value with its sets and dictionaries in the order of their bytes."""
    encode = _WRITE[form].encode
    if isinstance(value, list | tuple):
        return [_sorted(each, form) for each in value]
    if isinstance(value, set | frozenset):
        return sorted((_sorted(each, form) for each in value), key=encode)
    if isinstance(value, dict):
        return {key: _sorted(value[key], form) for key in sorted(value, key=encode)}
    fields = getattr(msgspec.inspect.type_info(type(value)), "fields", ())
    if not fields:
        return value
    found = msgspec.to_builtins(value, enc_hook=_to_plain)
    if isinstance(found, dict):
        for each in fields:
            if each.encode_name in found:
                found[each.encode_name] = _sorted(getattr(value, each.name), form)
    return found


def _check_finite(value: Any) -> None:
    """JSON has no NaN and no infinity; msgspec writes null for them."""
    todo = [msgspec.to_builtins(value, enc_hook=_to_plain, builtin_types=(Part,))]
    while todo:
        each = todo.pop()
        if isinstance(each, float) and not math.isfinite(each):
            raise NotInJSONError(f"JSON cannot encode {each}: send None or text")
        if isinstance(each, dict):
            todo += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            todo += each


def envelope(form: Form, **fields: Any) -> Envelope:
    """An envelope whose parts are in this form."""
    return (Envelope if form == "json" else PackedEnvelope)(**fields)


def reader(kind: Any, form: Form) -> Callable[[Part], Any]:
    """A function that decodes a part to a value of this type. It raises one of `BAD_INPUT`, or an
    error of the type itself."""
    if form == "json":
        return msgspec.json.Decoder(kind, dec_hook=_from_plain).decode
    return msgspec.msgpack.Decoder(kind, dec_hook=_from_plain).decode


def body_reader(kind: type[Value]) -> Callable[[bytes], Value]:
    """A function that decodes a body in JSON to a value of this type. It raises one of
    `BAD_INPUT`."""
    return msgspec.json.Decoder(kind).decode


def check(kind: Any) -> None:
    """Raises `TypeError` for a type whose values cannot be read from a body."""
    for each in _types_in(kind):
        if isinstance(each, msgspec.inspect.CustomType | msgspec.inspect.RawType):
            cls = getattr(each, "cls", Part)
            if not (issubclass(cls, PurePath) or hasattr(cls, "model_validate")):
                raise TypeError(f"a body cannot hold values of type {cls.__qualname__}")


def check_keys(kind: Any) -> None:
    """Raises `TypeError` for a type with dictionaries that JSON cannot encode."""
    for each in _types_in(kind):
        if isinstance(each, msgspec.inspect.DictType):
            for key in getattr(each.key_type, "types", (each.key_type,)):
                if isinstance(key, _NO_KEYS):
                    name = type(key).__name__.removesuffix("Type").lower()
                    raise TypeError(
                        f"JSON cannot have keys of type {name}: use App(form='msgpack')"
                    )


def is_complete(kind: Any) -> bool:
    """Does the type describe a value completely, without `Any`?"""
    return not any(isinstance(each, msgspec.inspect.AnyType) for each in _types_in(kind))


_NO_KEYS: Final = (
    msgspec.inspect.BoolType,
    msgspec.inspect.NoneType,
    msgspec.inspect.VarTupleType,
    msgspec.inspect.TupleType,
    msgspec.inspect.FrozenSetType,
    msgspec.inspect.DataclassType,
    msgspec.inspect.StructType,
    msgspec.inspect.NamedTupleType,
)


def _types_in(kind: Any) -> Iterator[Any]:
    """msgspec's information about the type and the types inside of it."""
    todo: list[Any] = [msgspec.inspect.type_info(kind)]
    seen: set[int] = set()
    while todo:
        each = todo.pop()
        if isinstance(each, tuple):
            todo += each
        elif isinstance(each, msgspec.Struct) and id(each) not in seen:
            seen.add(id(each))
            yield each
            todo += [getattr(each, name) for name in each.__struct_fields__]
