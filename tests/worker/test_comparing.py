"""What goes in comes out: each value arrives as it was sent, or is refused with the argument's
name."""

import collections
import datetime
import decimal
import enum
import json
import math
import uuid
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disque_trio.worker import App, NotEncodableError, UnfitTypeError, codec
from disque_trio.worker.arguments import Arguments
from disque_trio.worker.codec import Form
from disque_trio.worker.comparing import difference
from disque_trio.worker.envelope import read, write
from tests.worker.test_envelope import FORMS

BERLIN: Final = zoneinfo.ZoneInfo("Europe/Berlin")
NAN: Final = math.nan
OLD: Final = datetime.datetime(1880, 1, 1, tzinfo=BERLIN)
"""Its offset from UTC has seconds."""


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1


class Name(str):
    """A subclass, such as the safe strings of template engines."""

    def __str__(self) -> str:
        return "another text"


class Number(int):
    pass


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Measure:
    value: float | None
    unit: str = "m"
    tags: dict[int, str] = field(default_factory=dict)


@dataclass
class Finer(Measure):
    pass


@dataclass(eq=False)
class Silent:
    value: float | None


@dataclass
class Tagged:
    tags: dict[int, int]
    marks: set[Any]


@attrs.frozen
class Address:
    zip: str
    since: datetime.date | None = None


class Row(msgspec.Struct):
    id: uuid.UUID


def sent(kind: Any, value: Any, form: Form) -> Any:
    """What a handler is given. Its parameter has this annotation; Ellipsis is none."""

    def fn(x):  # type: ignore[no-untyped-def]
        pass

    if kind is not ...:
        fn.__annotations__["x"] = kind
    arguments = Arguments("t", fn)
    places, _ = arguments.pack([value], {}, form)
    (found,), _ = arguments.unpack(read(write(codec.envelope(form, task="t", args=places))))
    return found


def known(value: Any) -> Any:
    """In a form in which equal values are equal: NaN, and times where clocks are set back."""
    if isinstance(value, decimal.Decimal):
        return str(value) if value.is_nan() else value
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.timestamp()
    if isinstance(value, list):
        return [*map(known, value)]
    if isinstance(value, tuple):
        return (*map(known, value),)
    if isinstance(value, dict):
        return {known(key): known(each) for key, each in value.items()}
    return value


LEAVES: Final[dict[Any, st.SearchStrategy[Any]]] = {
    bool: st.booleans(),
    int: st.integers() | st.integers(2**62, 2**65) | st.integers(-(2**65), -(2**62)),
    float: st.floats() | st.just(-0.0),
    str: st.text(st.characters()),
    bytes: st.binary(),
    datetime.date: st.dates(),
    datetime.datetime: st.datetimes(timezones=st.none() | st.timezones()),
    datetime.timedelta: st.timedeltas(),
    decimal.Decimal: st.decimals(),
    uuid.UUID: st.uuids(),
    Colour: st.sampled_from(Colour),
    Size: st.sampled_from(Size),
    type(None): st.none(),
}
KEYS: Final = (int, str, datetime.date, uuid.UUID, Colour, bytes, float)


@st.composite
def typed(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """A type, and values of it."""
    shape = draw(st.sampled_from(["leaf", "leaf", "list", "dict", "tuple", "set", "optional"]))
    if shape == "leaf" or not depth:
        kind = draw(st.sampled_from(list(LEAVES)))
        return kind, LEAVES[kind]
    if shape in ("dict", "set"):
        key = draw(st.sampled_from(KEYS))
        if shape == "set":
            return set[key], st.sets(LEAVES[key], max_size=3)  # type: ignore[valid-type]
        kind, values = draw(typed(depth=depth - 1))
        return dict[key, kind], st.dictionaries(LEAVES[key], values, max_size=3)  # type: ignore[valid-type]
    kind, values = draw(typed(depth=depth - 1))
    if shape == "list":
        return list[kind], st.lists(values, max_size=3)  # type: ignore[valid-type]
    if shape == "tuple":
        return tuple[kind, int], st.tuples(values, st.integers(0, 9))  # type: ignore[valid-type]
    return kind | None, values | st.none()


@settings(max_examples=400)
@given(st.data(), st.sampled_from(FORMS), st.booleans())
def test_a_value_arrives_as_it_was_sent_or_is_refused(
    data: st.DataObject, form: Form, is_annotated: bool
) -> None:
    kind, values = data.draw(typed())
    value = data.draw(values)
    try:
        found = sent(kind if is_annotated else ..., value, form)
    except NotEncodableError as error:
        refused = str(error)
        assert refused.startswith("t: argument x: ")
    else:
        assert known(found) == known(value)


USUAL: Final = {
    **LEAVES,
    int: st.integers(-(2**63), 2**64 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(),
    datetime.datetime: st.datetimes(
        datetime.datetime(1900, 1, 1), timezones=st.sampled_from([None, BERLIN, datetime.UTC])
    ),
}


@given(st.data(), st.sampled_from(FORMS))
def test_usual_values_are_not_refused(data: st.DataObject, form: Form) -> None:
    kind = data.draw(st.sampled_from(list(USUAL)))
    value = data.draw(st.dictionaries(USUAL[int], USUAL[kind], max_size=2))

    assert known(sent(dict[int, kind], value, form)) == known(value)  # type: ignore[valid-type]


both = pytest.mark.parametrize("form", FORMS)


@both
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (dict[int, str], {2: "b", 1: "a"}),
        (dict[datetime.date, list[int]], {datetime.date(2026, 1, 1): [1]}),
        (dict[uuid.UUID, Measure], {uuid.UUID(int=1): Measure(1.5, tags={1: "x"})}),
        (Measure, Measure(None, tags={7: "seven", 8: "eight"})),
        (Silent, Silent(1.0)),
        (list[Address], [Address("1", datetime.date(2026, 1, 1)), Address("2")]),
        (Row, Row(uuid.UUID(int=3))),
        (Point, Point(1, 2)),
        (str, Name("safe")),
        (int, Number(3)),
        (dict[str, Any], collections.OrderedDict(b=1, a=[Name("x")])),
        (set[Colour], {Colour.RED, Colour.BLUE}),
        (float, -0.0),
        (datetime.datetime, datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN)),
        (datetime.datetime, datetime.datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN)),
        (datetime.date, "2026-01-01"),  # what was converted is what the annotation says
        (tuple[int, ...], [1, 2]),
        (list[datetime.date], ["2026-01-01"]),
        (dict[int, set[Point]], {1: {Point(1, 2)}, 2: {Point(3, 4), Point(1, 1)}}),
        (..., {"a": [1, 2.5, None, True, "text"]}),
    ],
)
def test_these_arrive(kind: Any, value: Any, form: Form) -> None:
    found = sent(kind, value, form)

    if isinstance(value, Silent):
        assert found.value == value.value
    elif isinstance(value, str) and kind is datetime.date:
        assert found == datetime.date(2026, 1, 1)
    elif kind == list[datetime.date]:
        assert found == [datetime.date(2026, 1, 1)]
    elif isinstance(value, list) and kind == tuple[int, ...]:
        assert found == (1, 2)
    else:
        assert known(found) == known(value)


@pytest.mark.parametrize(
    ("form", "kind", "value", "reason"),
    [
        ("json", float, NAN, "JSON cannot encode nan.*msgpack"),
        ("json", float | None, math.inf, "JSON cannot encode inf"),
        ("json", ..., {"a": [1.0, -math.inf]}, "JSON cannot encode -inf"),
        ("json", Measure, Measure(NAN), "JSON cannot encode nan"),
        ("json", Silent, Silent(NAN), "JSON cannot encode nan"),
        ("json", ..., {1: "a"}, "a key of type int arrives as another; annotate"),
        ("json", dict[str, Any], {"a": {"b": (1,)}}, r"at \['a'\]\['b'\]: tuple arrives as list"),
        ("json", ..., {"1": "a", 1: "b"}, "dict arrives as dict"),
        ("json", ..., uuid.UUID(int=1), "UUID arrives as str; annotate the argument"),
        ("json", ..., Measure(1.0), "Measure arrives as dict; annotate"),
        ("json", Measure, Finer(1.0), "Finer arrives as Measure$"),
        ("json", list[Measure], [Finer(1.0)], r"at \[0\]: Finer arrives as Measure$"),
        ("json", tuple[datetime.datetime], (OLD,), r"at \[0\]: datetime arrives as another"),
        ("json", float, 2**60 + 1, "int arrives as 1.15"),
        ("msgpack", int, 2**64, "can't serialize ints"),
        ("msgpack", ..., decimal.Decimal(1), "Decimal arrives as str"),
        ("json", str, "\ud800", "surrogates not allowed"),
        ("json", ..., [object()], "a value of type object cannot be encoded"),
        ("json", ..., 1j, "a value of type complex"),
    ],
)
def test_these_are_refused(form: Form, kind: Any, value: Any, reason: str) -> None:
    with pytest.raises(NotEncodableError, match=f"^t: argument x: .*{reason}"):
        sent(kind, value, form)


@pytest.mark.parametrize("value", [NAN, math.inf, {"a": [NAN]}, Silent(NAN), Measure(NAN)])
def test_msgpack_has_what_json_has_not(value: Any) -> None:
    kind = type(value) if isinstance(value, Silent | Measure) else ...

    assert difference(sent(kind, value, "msgpack"), value) is None


@both
def test_equal_values_are_written_alike(form: Form) -> None:
    one: dict[Any, Any] = {1: {Colour.RED, "b", "c"}, "2": Tagged({9: 1, 1: 2}, {"a", 3, 1})}
    two: dict[Any, Any] = {"2": Tagged({1: 2, 9: 1}, {1, 3, "a"}), 1: {"c", "b", Colour.RED}}

    assert one == two
    assert bytes(codec.part(one, form)) == bytes(codec.part(two, form))
    found = codec.read_plain(bytes(codec.part(one, form)), form)
    assert found["2"]["tags"] in ({"1": 2, "9": 1}, {1: 2, 9: 1})


@pytest.mark.parametrize(
    "kind", [dict[tuple[int, int], int], dict[bool, int], dict[Point | str, int]]
)
def test_keys_that_json_does_not_have_are_refused_when_the_task_is_declared(kind: Any) -> None:
    def fn(x):  # type: ignore[no-untyped-def]
        pass

    fn.__annotations__["x"] = kind
    with pytest.raises(
        UnfitTypeError, match=r"^t: argument x: JSON cannot have keys of type .*msgpack"
    ):
        App().task(name="t")(fn)
    App(form="msgpack").task(name="t")(fn)


def test_so_are_types_that_no_body_can_hold() -> None:
    def fn(x: complex) -> None: ...

    with pytest.raises(UnfitTypeError, match="cannot hold values of type complex"):
        App().task(name="t")(fn)


def test_an_annotation_may_name_what_is_defined_later() -> None:
    def fn(x: "Later") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    App().task(name="t")(fn)
    with pytest.raises(UnfitTypeError, match="'Later' is not defined"):
        App().task(name="t")(fn).arguments.check()


@pytest.mark.parametrize("make", [lambda: NAN, lambda: [1.0, math.inf], lambda: Silent(NAN)])
def test_a_result_has_no_nan_in_json(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="JSON cannot encode"):
        codec.part(make(), "json")
    assert json.loads(bytes(codec.part({1: None}, "json"))) == {"1": None}
