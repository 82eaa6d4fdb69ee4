"""Values to bytes and back, by the types of annotations: JSON and msgpack.

Nothing else in the package knows msgspec.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any, ClassVar, Final, Literal, TypeVar

import msgspec

Value = TypeVar("Value")
Form = Literal["json", "msgpack"]
Part = msgspec.Raw
"""A value inside of a body, which is decoded later."""

BAD_INPUT: Final = (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError)
"""What decoding raises for input that does not fit."""


class NotInJSONError(ValueError):
    """A value that JSON does not have, and msgpack has."""


class Envelope(msgspec.Struct, omit_defaults=True, frozen=True):
    """What a body says (docs/worker.md, "Bodies")."""

    form: ClassVar[Form] = "json"
    """How its parts are encoded."""
    task: str
    args: list[Part] = []
    kwargs: dict[str, Part] = {}
    key: str | None = None
    headers: dict[str, Any] = {}
    v: int = 1


class PackedEnvelope(Envelope, omit_defaults=True, frozen=True):
    """The same in msgpack."""

    form: ClassVar[Form] = "msgpack"


class Coded(msgspec.Struct, omit_defaults=True, frozen=True):
    """A body that codecs have changed (`codecs`)."""

    task: str
    codecs: list[str]
    """Their names, in the order in which they were applied."""
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
    """Those of `Options` that are no defaults."""
    is_open: bool = False
    """Its first argument is what the step before it returns."""
    once: str = ""
    """Names it for nodes, if others may have its key."""


class FlowStep(msgspec.Struct, omit_defaults=True, frozen=True):
    """A member of a flow: a job that is added when those before it are done."""

    steps: list[Step]
    """Itself, and those of its chain that follow."""
    after: list[int] = []
    """Places of the members before it, which are less than its own."""
    headers: dict[str, Any] = {}
    has_parents: bool = False
    """Is it told the ids of those jobs?"""


class Result(msgspec.Struct, omit_defaults=True, frozen=True):
    """What the body of a result says."""

    key: str
    """That of the job."""
    value: Part = Part(b"null")
    """JSON."""
    error: dict[str, str] | None = None
    """Why there is no value: type, text, traceback."""
    progress: tuple[float, str] | None = None
    """There is no value yet: how far the handler is, and what it says."""
    task: str = ""
    """Of a result that nodes keep: the task that has returned it."""
    next: str = ""
    """The same, of a step of a chain: the job of the next step, which has the result."""


def _to_plain(value: Any) -> Any:
    """Values of classes that msgspec does not know."""
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "model_dump"):  # a model of pydantic, which is not imported for it
        return value.model_dump(mode="json")
    for kind, plain in _PLAIN.items():
        if isinstance(value, kind):
            return plain(value)
    name = type(value).__qualname__
    if isinstance(value, tuple | frozenset | None):  # such values come here as keys only
        raise NotInJSONError(f"JSON has no keys of type {name}")
    raise TypeError(f"a value of type {name} cannot be encoded")


_PLAIN: Final[dict[type, Callable[[Any], Any]]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
}
"""Of a value of a subclass, which msgspec refuses: the value itself, whatever it says it is."""


def _from_plain(kind: type[Value], value: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, PurePath):
        return kind(value)
    return getattr(kind, "model_validate")(value)  # noqa: B009  # `check` has seen it


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
    """What a body says that codecs have changed. Raises one of `BAD_INPUT`."""
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
    """All of a body, as dictionaries, lists, text and numbers. Raises one of `BAD_INPUT`."""
    return _PLAIN_JSON.decode(body) if form == "json" else _PLAIN_MSGPACK.decode(body)


def write(value: Any, form: Form) -> bytes:
    """The bytes of a value. Raises one of `BAD_INPUT` for one that has none."""
    written: bytes = _WRITE[form].encode(value)
    if form == "json" and b"null" in written:
        _check_finite(value)
    return written


def part(value: Any, form: Form) -> Part:
    """The value as a part of a body: the same bytes for equal values, in whatever order sets and
    dictionaries were filled. Raises one of `BAD_INPUT`, or what the value itself raises."""
    try:
        written: bytes = _WRITE_SORTED[form].encode(value)
    except TypeError:
        # msgspec sorts no dictionaries whose keys are no text, and no sets without an order.
        written = _WRITE[form].encode(_sorted(value, form))
    if form == "json" and b"null" in written:
        _check_finite(value)
    return Part(written)


def plain(value: Any) -> Any:
    """The value as dictionaries, lists, text and numbers. Raises `TypeError`, or what the value
    itself raises."""
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
            raise NotInJSONError(f"JSON has no {each}: None or a text can be sent")
        if isinstance(each, dict):
            todo += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            todo += each


def envelope(form: Form, **fields: Any) -> Envelope:
    """An envelope whose parts are in this form."""
    return (Envelope if form == "json" else PackedEnvelope)(**fields)


def reader(kind: Any, form: Form) -> Callable[[Part], Any]:
    """What turns a part into a value of this type. It raises one of `BAD_INPUT`, or what the type
    itself raises."""
    if form == "json":
        return msgspec.json.Decoder(kind, dec_hook=_from_plain).decode
    return msgspec.msgpack.Decoder(kind, dec_hook=_from_plain).decode


def body_reader(kind: type[Value]) -> Callable[[bytes], Value]:
    """What turns a body in JSON into a value of this type. It raises one of `BAD_INPUT`."""
    return msgspec.json.Decoder(kind).decode


def check(kind: Any) -> None:
    """Raises `TypeError` for a type whose values cannot be read from a body."""
    for each in _types_in(kind):
        if isinstance(each, msgspec.inspect.CustomType | msgspec.inspect.RawType):
            cls = getattr(each, "cls", Part)
            if not (issubclass(cls, PurePath) or hasattr(cls, "model_validate")):
                raise TypeError(f"a body cannot hold values of type {cls.__qualname__}")


def check_keys(kind: Any) -> None:
    """Raises `TypeError` for a type with dictionaries that JSON does not have."""
    for each in _types_in(kind):
        if isinstance(each, msgspec.inspect.DictType):
            for key in getattr(each.key_type, "types", (each.key_type,)):
                if isinstance(key, _NO_KEYS):
                    name = type(key).__name__.removesuffix("Type").lower()
                    raise TypeError(f"JSON has no keys of type {name}: use App(form='msgpack')")


def is_complete(kind: Any) -> bool:
    """Does the type say all of a value, without `Any`?"""
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
    """What msgspec says of the type and of the types inside of it."""
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
