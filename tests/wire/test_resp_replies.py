import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import (
    NULL_ARRAY,
    OK,
    Failure,
    Map,
    Reply,
    Set,
    Spilled,
    Status,
)
from disque_trio.wire.replies import LARGE, LARGEST, MANY, TooLargeError, encode_reply, encode_small
from disque_trio.wire.replies import pieces as in_pieces
from disque_trio.wire.resp import ProtocolError, ReplyParser
from tests.strategies import cuts, payloads, pieces, replies

ID = b"D-aeecadd2-dNZ9vS2xMWHExBW39zgS0gOV-05a1"

SAMPLES: list[tuple[Reply, bytes]] = [
    (OK, b"+OK\r\n"),
    (Status(ID), b"+" + ID + b"\r\n"),
    (Failure(b"ERR syntax error"), b"-ERR syntax error\r\n"),
    (0, b":0\r\n"),
    (-(1 << 63), b":-9223372036854775808\r\n"),
    (b"", b"$0\r\n\r\n"),
    (b"a\r\nb", b"$4\r\na\r\nb\r\n"),
    (b"x" * 5000, b"$5000\r\n" + b"x" * 5000 + b"\r\n"),
    (None, b"$-1\r\n"),
    (NULL_ARRAY, b"*-1\r\n"),
    ([], b"*0\r\n"),
    ([[b"q", ID, b"b"]], b"*1\r\n*3\r\n$1\r\nq\r\n$40\r\n" + ID + b"\r\n$1\r\nb\r\n"),
    ([b"0", [Status(ID)]], b"*2\r\n$1\r\n0\r\n*1\r\n+" + ID + b"\r\n"),
    ([None, NULL_ARRAY, 7, Failure(b"NOJOB")], b"*4\r\n$-1\r\n*-1\r\n:7\r\n-NOJOB\r\n"),
    (Map({}), b"%0\r\n"),
    (Map({b"proto": 3, b"modules": []}), b"%2\r\n$5\r\nproto\r\n:3\r\n$7\r\nmodules\r\n*0\r\n"),
    (Set([]), b"~0\r\n"),
    ([Set([OK, Set([1])]), 2], b"*2\r\n~2\r\n+OK\r\n~1\r\n:1\r\n:2\r\n"),
    ([1] * 300, b"*300\r\n" + b":1\r\n" * 300),
]


@pytest.mark.parametrize(("reply", "data"), SAMPLES)
def test_a_reply_is_written_and_read_so(reply: Reply, data: bytes) -> None:
    assert encode_reply(reply) == data
    assert ReplyParser().feed(data) == [reply]


def test_line_ends_in_texts_become_spaces() -> None:
    assert encode_reply(Status(b"a\r\nb")) == b"+a  b\r\n"
    assert encode_reply(Failure(b"ERR unknown command 'a\nb'")) == b"-ERR unknown command 'a b'\r\n"
    assert encode_reply([Status(b"\r")]) == b"*1\r\n+ \r\n"


def test_types_are_kept_apart() -> None:
    replies_ = ReplyParser().feed(b"+1\r\n-1\r\n:1\r\n$1\r\n1\r\n")

    assert replies_ == [Status(b"1"), Failure(b"1"), 1, b"1"]
    assert [type(reply) for reply in replies_] == [Status, Failure, int, bytes]


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request",
        b"\r\n",
        b"=8\r\ntxt:abcd\r\n",
        b":\r\n",
        b":+1\r\n",
        b":1.5\r\n",
        b"$-2\r\n",
        b"$x\r\n",
        b"$536870913\r\n",
        b"*-2\r\n",
        b"*x\r\n",
        b"*99999999999999999999\r\n",
        b"*1\r\n" * 33,
        b"*2\r\n:01\r\n:1\r\n",
        b"*2\r\n$01\r\nx\r\n:1\r\n",
        b"*3\r\n:1\r\n:1\xb2\r\n:1\r\n",
        b"*2\r\n!1\r\n:1\r\n",
        b"%-1\r\n",
        b"%x\r\n",
        b"%1\r\n:1\r\n:2\r\n",
        b"*3\r\n:1\r\n\r\n",
    ],
)
def test_what_is_no_reply_is_refused(data: bytes) -> None:
    parser = ReplyParser()

    with pytest.raises(ProtocolError, match="Protocol error: "):
        parser.feed(data)


def test_an_array_that_claims_many_items_takes_no_room() -> None:
    parser = ReplyParser()

    assert parser.feed(b"*1000000000000\r\n:1\r\n") == []


def test_a_long_reply_in_small_reads_is_taken() -> None:
    body = bytes(range(256)) * 400
    data = encode_reply([[b"q", ID, body]])
    parser = ReplyParser()

    taken = [
        reply for at in range(0, len(data), 1000) for reply in parser.feed(data[at : at + 1000])
    ]

    assert taken == [[[b"q", ID, body]]]


@given(st.lists(replies()), cuts())
def test_replies_are_read_as_written(written: list[Reply], shares: list[float]) -> None:
    data = b"".join(map(encode_reply, written))
    parser = ReplyParser()

    assert [reply for part in pieces(data, shares) for reply in parser.feed(part)] == written


@given(payloads(200), cuts())
def test_any_bytes_are_replies_or_a_protocol_error(data: bytes, shares: list[float]) -> None:
    parser = ReplyParser()

    with contextlib.suppress(ProtocolError):
        for part in pieces(data, shares):
            parser.feed(part)


@given(st.lists(replies(), min_size=1), st.data())
def test_damaged_replies_are_read_or_refused(written: list[Reply], draw: st.DataObject) -> None:
    data = bytearray(b"".join(map(encode_reply, written)))
    data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))

    with contextlib.suppress(ProtocolError):
        ReplyParser().feed(bytes(data))


def test_nulls_are_written_as_the_version_of_the_protocol_has_them() -> None:
    assert encode_reply(None) == b"$-1\r\n"
    assert encode_reply([NULL_ARRAY, 1]) == b"*2\r\n*-1\r\n:1\r\n"
    assert encode_reply(None, 3) == b"_\r\n"
    assert encode_reply([NULL_ARRAY, 1], 3) == b"*2\r\n_\r\n:1\r\n"


# Large ones.


class Unreadable(Spilled):
    """A body whose disk fails."""

    def __bytes__(self) -> bytes:
        raise OSError(5, "Input/output error")


LARGE_ONES: list[Reply] = [
    [b"q"] * (MANY + 1),
    [[b"q", ID, b"x" * (LARGE + 1)], OK, Failure(b"NOJOB"), 7],
    [b"0", [Status(ID)] * 1000],
    b"x" * (LARGEST + 1),
    Map({b"%d" % number: [number] for number in range(MANY + 1)}),
    Set(list(range(MANY + 1))),
]


@pytest.mark.parametrize("reply", LARGE_ONES)
def test_a_large_reply_is_written_in_pieces(reply: Reply) -> None:
    with pytest.raises(TooLargeError):
        encode_small(reply, 3)
    made = list(in_pieces(reply, 3))

    assert all(isinstance(each, bytes) and len(each) < 2 * (1 << 16) for each in made)
    assert ReplyParser().feed(encode_reply(reply, 3)) == [reply]
    assert b"".join(each for each in made if isinstance(each, bytes)) == encode_reply(reply, 3)


@pytest.mark.parametrize("size", [1, LARGE + 1])
@pytest.mark.parametrize("count", [1, MANY + 1])
def test_a_body_that_cannot_be_read_makes_the_whole_reply_an_error(size: int, count: int) -> None:
    jobs: list[Reply] = [[b"q", ID, Unreadable(size)] for _ in range(count)]
    data = encode_reply([[b"q", ID, b"body"], *jobs])

    assert data.startswith(b"-IOERR a body cannot be read from the spill-directory: Input")
    assert data.count(b"\r\n") == 1
