"""Arguments of all commands are checked before anything is sent, by every client."""

import array
import enum
import inspect
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from disque_trio.client import BlockingClient, Client, commands
from tests.client.test_methods import METHODS

ID = "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
NAMES = [*METHODS]


class Colour(str, enum.Enum):  # noqa: UP042  # a StrEnum has no text of its own
    RED = "red"


class Odd(str):
    def __str__(self) -> str:
        return "something else"


def parameters() -> list[tuple[str, str]]:
    return [
        (name, each.name)
        for name in NAMES
        for each in inspect.signature(getattr(commands, name)).parameters.values()
    ]


def called(make: Callable[..., Any], wrong: str, value: Any) -> Any:
    """The command with this value for this argument, and something that fits for those that it
    needs."""
    args: list[Any] = []
    options: dict[str, Any] = {}
    for each in inspect.signature(make).parameters.values():
        if each.kind is each.KEYWORD_ONLY:
            if each.name == wrong:
                options[each.name] = value
        elif each.name == wrong:
            args.append(value)
        elif each.default is each.empty and each.kind is not each.VAR_POSITIONAL:
            args.append("q")
        elif each.kind is each.VAR_POSITIONAL:
            args.append(ID)
        else:
            args.append(each.default)
    return make(*args, **options)


@pytest.mark.parametrize(("name", "argument"), parameters())
@pytest.mark.parametrize("value", [object(), {"a": 1}, [b"q", 5], Decimal(1), 1j])
def test_an_argument_of_another_type_is_refused_with_its_name(
    name: str, argument: str, value: Any
) -> None:
    with pytest.raises(TypeError, match=rf"^{name}: {argument} is of type \w+: it must be "):
        called(getattr(commands, name), argument, value)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda c: c.getjob(["mail"]), r"^getjob: queues is of type list: it must be text or b"),
        (lambda c: c.getjob("mail", count=True), "^getjob: count is of type bool: it must be an i"),
        (lambda c: c.getjob("mail", count=1.5), "^getjob: count is of type float: it must be an"),
        (lambda c: c.getjob("mail", timeout="5"), "timeout is of type str: it must be a number or"),
        (lambda c: c.getjob("mail", with_meta=1), "with_meta is of type int: it must be True or"),
        (lambda c: c.addjob("q", None), "^addjob: body is of type NoneType: it must be text or"),
        (lambda c: c.addjob("q", {"a": 1}), "^addjob: body is of type dict"),
        (lambda c: c.addjob("q", 1.5), "^addjob: body is of type float"),
        (lambda c: c.addjob(5, "b"), "^addjob: queue is of type int"),
        (lambda c: c.addjob("q", "b", delay="5"), "delay is of type str: it must be a number$"),
        (lambda c: c.addjob("q", "b", retry=True), "retry is of type bool: it must be an int or"),
        (lambda c: c.ackjob(None), "jobs is of type NoneType: it must be text or a Job"),
        (lambda c: c.ackjob([ID]), "jobs is of type list: .*; put \\* before it"),
        (lambda c: c.jscan(states="dead"), "states is of type str: it must be a list of text"),
        (lambda c: c.call("PING", None), "^call: words is of type NoneType"),
        (lambda c: c.pause("q", 1), "^pause: options is of type int: it must be text"),
    ],
)
def test_mistakes_that_were_sent_before(make: Callable[[Any], Any], error: str) -> None:
    for client in (commands, BlockingClient()):
        with pytest.raises(TypeError, match=error):
            make(client)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, -0.5])
def test_a_time_is_a_number_of_seconds(value: float) -> None:
    for make in (commands.addjob, BlockingClient().addjob):
        with pytest.raises(ValueError, match=f"^addjob: delay is {value}: it must be 0 or "):
            make("q", "b", delay=value)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda c: c.addjob("q\ud800", "b"), r"addjob: queue is 'q\\ud800'"),
        (lambda c: c.addjob("q", "b\ud800"), "addjob: body is"),
        (lambda c: c.addjob("q", "b", unique="\udfff"), "addjob: unique is"),
        (lambda c: c.getjob("q", "r\ud800"), "getjob: queues is"),
        (lambda c: c.jscan(states=["dead\ud800"]), "jscan: states is"),
        (lambda c: c.call("PING", "\ud800"), "call: words is"),
    ],
)
def test_text_that_has_no_utf_8_is_refused_with_the_name_of_its_argument(
    make: Callable[[Any], Any], what: str
) -> None:
    for client in (commands, BlockingClient()):
        with pytest.raises(ValueError, match=f"^{what}.*: UTF-8 cannot encode its lone surrogate$"):
            make(client)


def test_a_choice_is_one_of_those_there_are() -> None:
    choice: Any = "keep"
    with pytest.raises(ValueError, match="if_exists is 'keep': it must be one of 'return', 'rej"):
        commands.addjob("q", "b", unique="k", if_exists=choice)


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (b"\xff", b"\xff"),
        (bytearray(b"z"), b"z"),
        (memoryview(b"abcd")[::2], b"ac"),
        (array.array("B", [1, 2]), b"\x01\x02"),
        ("grün", "grün".encode()),
        ("\udcff", b"\xff"),
        (Colour.RED, b"red"),
        (Odd("itself"), b"itself"),
    ],
)
def test_a_body_of_bytes_is_sent_as_it_is_and_text_as_utf_8(body: Any, sent: bytes) -> None:
    assert commands.addjob(body, body).words[1:3] == (sent, sent)


def test_an_asynchronous_client_refuses_when_it_is_awaited() -> None:
    queues: Any = ["mail"]
    with pytest.raises(TypeError, match=r"^getjob: queues is of type list"):
        Client().getjob(queues).send(None)
