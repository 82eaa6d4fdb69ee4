"""Arguments: what fits is what the handler gets, and the rest is refused with its path."""

import datetime
import decimal
import enum
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.worker import codec
from disque_trio.worker.arguments import Arguments, UnfitTypeError
from disque_trio.worker.codec import Form
from disque_trio.worker.envelope import BadBodyError, NotEncodableError, read, write
from tests.worker.test_envelope import FORMS


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Mail:
    text: str
    size: int = 0


@attrs.frozen
class Address:
    zip: str


class Options(TypedDict):
    urgent: bool


class Model:
    """Has what the models of pydantic have."""

    def __init__(self, n: int) -> None:
        self.n = n

    def model_dump(self, mode: str) -> dict[str, int]:
        assert mode == "json"
        return {"n": self.n}

    @classmethod
    def model_validate(cls, value: dict[str, int]) -> "Model":
        return cls(value["n"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.n == other.n

    __hash__ = None  # type: ignore[assignment]


def sent(fn: Callable[..., Any], form: Form, *args: Any, **kwargs: Any) -> Any:
    """What the function is called with after a journey through a body."""
    arguments = Arguments("t", fn)
    places, names = arguments.pack(args, kwargs, form)
    body = write(codec.envelope(form, task="t", args=places, kwargs=names))
    return arguments.unpack(read(body))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Mail, Mail("hi", 3)),
        (Address, Address("12345")),
        (Options, {"urgent": True}),
        (datetime.datetime, datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC)),
        (datetime.timedelta, datetime.timedelta(seconds=90)),
        (uuid.UUID, uuid.UUID(int=7)),
        (decimal.Decimal, decimal.Decimal("1.50")),
        (Colour, Colour.RED),
        (bytes, b"\x00\xff"),
        (tuple[int, str], (1, "a")),
        (set[int], {1, 2}),
        (Path, Path("/a/b")),
        (list[Model], [Model(3)]),
        (Annotated[int, msgspec.Meta(ge=1)], 5),
        (dict[str, list[Mail | None]], {"a": [Mail("x"), None]}),
    ],
)
def test_a_value_arrives_as_its_annotation_says(form: Form, kind: Any, value: Any) -> None:
    def fn(x):  # type: ignore[no-untyped-def]
        pass

    fn.__annotations__["x"] = kind
    assert sent(fn, form, value) == ([value], {})


def shape(a: int, b: str = "b", *rest: float, c: bool = True, **others: int) -> None:
    pass


@given(
    st.integers(-(2**63), 2**63),
    st.text(),
    st.lists(st.floats(allow_nan=False, allow_infinity=False)),
    st.booleans(),
    st.dictionaries(st.sampled_from(["x", "y", "rest", "others"]), st.integers(0, 9)),
    st.sampled_from(FORMS),
)
def test_each_argument_finds_its_parameter(
    a: int, b: str, rest: list[float], c: bool, others: dict[str, int], form: Form
) -> None:
    assert sent(shape, form, a, b, *rest, c=c, **others) == ([a, b, *rest], {"c": c, **others})
    assert sent(shape, form, b=b, a=a) == ([a, b], {})
    assert sent(shape, form, a) == ([a], {})


def plain(a: int, b: str = "b", c: list[int] | None = None) -> None:
    pass


def strict(a: int, *, key: str) -> None:
    pass


def only_named(*, key: str) -> None:
    pass


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "reason"),
    [
        (plain, ["x"], {}, r"\$\.args\[0\]: Expected `int`, got `str`"),
        (plain, [1, 2], {}, r"\$\.args\[1\]: Expected `str`, got `int`"),
        (plain, [1], {"c": [1, "x"]}, r"\$\.kwargs\.c\[1\]: Expected `int`, got `str`"),
        (plain, [1, "b", [], 4], {}, "too many positional arguments"),
        (plain, [], {}, "missing a required argument: 'a'"),
        (plain, [1], {"a": 2}, "multiple values for argument 'a'"),
        (plain, [1], {"d": 2}, "unexpected keyword argument 'd'"),
        (strict, [1], {}, "missing a required (keyword-only )?argument: 'key'"),
        (only_named, [], {}, "missing a required (keyword-only )?argument: 'key'"),
        (only_named, [1], {}, "too many positional arguments"),
        (shape, [1, "b", 1.5, "x"], {}, r"\$\.args\[3\]: Expected `float`"),
        (shape, [1], {"z": "x"}, r"\$\.kwargs\.z: Expected `int`"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_their_path(
    fn: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], reason: str
) -> None:
    body = msgspec.json.encode({"task": "t", "args": args, "kwargs": kwargs})

    with pytest.raises(BadBodyError, match="^invalid arguments: .*" + reason):
        Arguments("t", fn).unpack(read(body))


def test_a_missing_argument_takes_its_default() -> None:
    assert Arguments("t", plain).unpack(read(b'{"task":"t","args":[1]}')) == ([1], {})


def test_whatever_a_type_raises_is_a_reason() -> None:
    @dataclass
    class Odd:
        n: int

        def __post_init__(self) -> None:
            raise LookupError(f"no {self.n}")

    def fn(odd):  # type: ignore[no-untyped-def]
        pass

    fn.__annotations__["odd"] = Odd
    with pytest.raises(BadBodyError, match=r"\$\.args\[0\]: .*no 7"):
        Arguments("t", fn).unpack(read(b'{"task":"t","args":[{"n":7}]}'))


# When jobs are added.


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ((), "t: missing a required argument: 'a'"),
        (("x",), "t: argument a: Expected `int`, got `str`"),
        ((1, "b", ["x"]), "t: argument c: Expected `int`, got `str`"),
        ((object(),), "t: argument a: a value of type object cannot be encoded"),
    ],
)
def test_what_does_not_fit_is_not_added(args: tuple[Any, ...], reason: str) -> None:
    with pytest.raises(NotEncodableError, match=reason):
        Arguments("t", plain).pack(args, {}, "json")


def test_a_parameter_that_no_body_has_is_left_out() -> None:
    def fn(job: object, a: int) -> None:
        pass

    assert Arguments("t", fn, skip=1).unpack(read(b'{"task":"t","args":[1]}')) == ([1], {})


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (socket_like := type("Socket", (), {}), "cannot hold values of type Socket"),
        (list[socket_like], "cannot hold values of type Socket"),  # type: ignore[valid-type]
        ("Nowhere", "'Nowhere' is not defined"),
    ],
)
def test_an_annotation_that_no_body_can_hold_is_refused(kind: Any, reason: str) -> None:
    def fn(x):  # type: ignore[no-untyped-def]
        pass

    fn.__annotations__["x"] = kind
    with pytest.raises(UnfitTypeError, match=reason):
        Arguments("shop.send", fn).check()


def test_a_missing_argument_by_name_is_refused_also_if_nothing_is_given() -> None:
    def count(*, number: int) -> int:
        return number

    with pytest.raises(NotEncodableError, match="number"):
        Arguments("count", count).pack((), {}, "json")
