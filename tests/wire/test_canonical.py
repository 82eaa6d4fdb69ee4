import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.wire.canonical import array_header, bulk_header, fit, take
from disque_trio.wire.resp import encode_request
from tests.strategies import requests

PING = b"*1\r\n$4\r\nPING\r\n"
QLEN = b"*2\r\n$4\r\nQLEN\r\n$1\r\nq\r\n"


@pytest.mark.parametrize("number", [0, 1, 255, 256, 4095, 4096, 1 << 29])
def test_headers_are_shortest_numbers(number: int) -> None:
    assert array_header(number) == b"*%d" % number
    assert bulk_header(number) == b"$%d" % number


def test_headers_fit_the_arguments_that_they_are_the_headers_of() -> None:
    assert fit([b"$1", b"$0"], [b"q", b""])
    assert not fit([b"$1", b"$1"], [b"q", b""])
    assert not fit([b"$01"], [b"q"])
    assert not fit([b"+"], [b""])


def test_long_arguments_are_left_to_others() -> None:
    assert not fit([b"$5000"], [b"x" * 5000])


@pytest.mark.parametrize(
    ("data", "taken", "left"),
    [
        (b"", [], b""),
        (PING + PING, [[b"PING"], [b"PING"]], b""),
        (PING + PING + b"*1\r\n$4\r\nPI", [[b"PING"], [b"PING"]], b"*1\r\n$4\r\nPI"),
        (QLEN + PING + QLEN, [[b"QLEN", b"q"], [b"PING"], [b"QLEN", b"q"]], b""),
        (QLEN + PING + b"PING\r\n" + PING, [[b"QLEN", b"q"], [b"PING"]], b"PING\r\n" + PING),
        (PING + b"*1\r\n+PING\r\n", [[b"PING"]], b"*1\r\n+PING\r\n"),
        (b"*0\r\n" + PING, [], b"*0\r\n" + PING),
        (PING + b"*1\r\n$4\r\na\r\nb\r\n", [[b"PING"]], b"*1\r\n$4\r\na\r\nb\r\n"),
    ],
)
def test_canonical_requests_are_taken_up_to_the_first_that_is_not(
    data: bytes, taken: list[list[bytes]], left: bytes
) -> None:
    lines = data.split(b"\r\n")

    assert take(lines) == taken
    assert b"\r\n".join(lines) == left


@given(st.lists(requests()))
def test_what_is_taken_and_what_is_left_is_what_there_was(written: list[list[bytes]]) -> None:
    data = b"".join(map(encode_request, written))
    lines = data.split(b"\r\n")

    taken = take(lines)

    assert taken == written[: len(taken)]
    assert b"\r\n".join(lines) == b"".join(map(encode_request, written[len(taken) :]))
