from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.wire.requests import MAX_LINE, RequestParser
from disque_trio.wire.resp import encode_request
from tests.parsing import all_requests
from tests.strategies import cuts, payloads, pieces, requests

ADDJOB = b"*4\r\n$6\r\nADDJOB\r\n$1\r\nq\r\n$4\r\nbody\r\n$1\r\n0\r\n"
FRAGMENTS = [
    ADDJOB,
    b"*1\r\n$4\r\nPING\r\n",
    b"PING\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*2\r\n",
    b"*02\r\n",
    b"$4\r\n",
    b"$2\r\n\r\n\r\n",
    b"$04\r\n",
    b"$-1\r\n",
    b"+PING\r\n",
    b":7\r\n",
    b"=8\r\ntxt:abcd\r\n",
    b"(12345\r\n",
    b"abcd\r\n",
    b"\r\n",
    b"\r",
    b"\n",
    b"$",
    b"*",
    b'"',
]


def fed(parts: Iterable[bytes]) -> tuple[list[list[bytes]], bytes | None, int]:
    parser = RequestParser()
    taken = [request for part in parts for request in all_requests(parser, part)]
    return taken, parser.error.text if parser.error else None, parser.buffered


def one_by_one(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def complaint(data: bytes) -> bytes | None:
    whole = fed([data])
    assert fed(pieces(data, [0.5])) == whole
    assert whole[0] == []
    return whole[1]


def test_a_request_is_an_array_of_bulk_strings() -> None:
    assert fed([ADDJOB]) == ([[b"ADDJOB", b"q", b"body", b"0"]], None, 0)


def test_a_pipeline_gives_its_requests_in_order() -> None:
    data = b"".join(encode_request([b"GETJOB", b"FROM", b"q%d" % n]) for n in range(200))

    taken, error, buffered = fed([data])

    assert taken == [[b"GETJOB", b"FROM", b"q%d" % n] for n in range(200)]
    assert error is None
    assert buffered == 0


def test_a_pipeline_may_mix_shapes_and_styles() -> None:
    data = ADDJOB + b"*1\r\n$4\r\nPING\r\n" + ADDJOB + b"PING\r\n" + ADDJOB

    taken, _, _ = fed([data])

    assert [request[0] for request in taken] == [b"ADDJOB", b"PING", b"ADDJOB", b"PING", b"ADDJOB"]


def test_a_request_cut_anywhere_is_whole_again() -> None:
    for cut in range(1, len(ADDJOB)):
        parser = RequestParser()

        assert parser.feed(ADDJOB[:cut]) == []
        assert parser.buffered == cut
        assert parser.feed(ADDJOB[cut:] + ADDJOB) == [[b"ADDJOB", b"q", b"body", b"0"]] * 2
        assert parser.buffered == 0


def test_arguments_hold_any_bytes() -> None:
    args = [b"", b"\r\n", b"$1\r\na\r\n", bytes(range(256)), b"*1\r\n"]

    assert fed([encode_request(args) * 2]) == ([args, args], None, 0)


def test_arrays_without_elements_are_skipped() -> None:
    assert fed([b"*0\r\n*-1\r\n*-9223372036854775808\r\n" + ADDJOB])[0] == [
        [b"ADDJOB", b"q", b"body", b"0"]
    ]


def test_what_follows_an_argument_is_not_checked() -> None:
    assert fed([b"*2\r\n$1\r\naXY$1\r\nb\n\n"]) == ([[b"a", b"b"]], None, 0)


def test_what_follows_the_cr_of_a_header_is_not_checked() -> None:
    assert fed([b"*1\rX$4\rYPING\r\n"]) == ([[b"PING"]], None, 0)


@pytest.mark.parametrize(
    ("line", "request_"),
    [
        (b"PING\r\n", [b"PING"]),
        (b"PING\n", [b"PING"]),
        (b'addjob q "a\\x00b" 0\r\n', [b"addjob", b"q", b"a\x00b", b"0"]),
        (b"PING \"\" ''\r\n", [b"PING"]),
        (b"$4\r\n", [b"$4"]),
    ],
)
def test_a_line_is_an_inline_request(line: bytes, request_: list[bytes]) -> None:
    assert fed([line]) == ([request_], None, 0)


def test_blank_lines_are_skipped() -> None:
    assert fed([b'\r\n\n  \r\n""\r\nPING\r\n']) == ([[b"PING"]], None, 0)


def test_a_bare_line_feed_swallows_nothing() -> None:
    assert fed([b"PING\nPING\n*1\r\n$4\r\nPING\r\n"])[0] == [[b"PING"]] * 3


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x" * (MAX_LINE + 1), b"too big inline request"),
        (b"x" * (MAX_LINE + 1) + b"\r\n", b"too big inline request"),
        (b'PING "x\r\n', b"unbalanced quotes in request"),
        (b"PING 'x'y\r\n", b"unbalanced quotes in request"),
        (b"*" + b"1" * MAX_LINE, b"too big mbulk count string"),
        (b"*" + b"0" * MAX_LINE + b"1\r\n", b"too big mbulk count string"),
        (b"*x\r\n", b"invalid multibulk length"),
        (b"*\r\n", b"invalid multibulk length"),
        (b"*1x\r\n", b"invalid multibulk length"),
        (b"* 1\r\n", b"invalid multibulk length"),
        (b"*+1\r\n", b"invalid multibulk length"),
        (b"*01\r\n", b"invalid multibulk length"),
        (b"*-0\r\n", b"invalid multibulk length"),
        (b"*-\r\n", b"invalid multibulk length"),
        (b"*--1\r\n", b"invalid multibulk length"),
        (b"*1048577\r\n", b"invalid multibulk length"),
        (b"*1000000000\r\n", b"invalid multibulk length"),
        (b"*9223372036854775808\r\n", b"invalid multibulk length"),
        (b"*-9223372036854775809\r\n", b"invalid multibulk length"),
        (b"*" + b"9" * 5000 + b"\r\n", b"invalid multibulk length"),
        (b"*1\r\n$" + b"1" * MAX_LINE, b"too big bulk count string"),
        (b"*1\r\n" + b"x" * (MAX_LINE + 1), b"too big bulk count string"),
        (b"*1\r\nPING\r\n", b"expected '$', got 'P'"),
        (b"*1\r\n+PING\r\n", b"expected '$', got '+'"),
        (b"*1\r\n=8\r\ntxt:PING\r\n", b"expected '$', got '='"),
        (b"*1\r\n*1\r\n$4\r\nPING\r\n", b"expected '$', got '*'"),
        (b"*1\r\n\r\n", b"expected '$', got '\r'"),
        (b"*1\r\n$x\r\n", b"invalid bulk length"),
        (b"*1\r\n$\r\n", b"invalid bulk length"),
        (b"*1\r\n$-1\r\n", b"invalid bulk length"),
        (b"*1\r\n$04\r\nPING\r\n", b"invalid bulk length"),
        (b"*1\r\n$536870913\r\n", b"invalid bulk length"),
    ],
)
def test_a_mistake_has_its_text(data: bytes, text: bytes) -> None:
    assert complaint(data) == b"ERR Protocol error: " + text


@pytest.mark.parametrize(
    "data",
    [
        b"x" * MAX_LINE,
        b"*" + b"1" * (MAX_LINE - 1),
        b"*1048576\r\n$536870912\r\n",
        b"*1\r\n$" + b"1" * (MAX_LINE - 1),
        b"*1\r",
    ],
)
def test_the_limits_themselves_are_allowed(data: bytes) -> None:
    assert fed([data]) == ([], None, len(data))


def test_a_line_of_the_greatest_length_is_taken() -> None:
    assert fed([b"x" * MAX_LINE + b"\n"]) == ([[b"x" * MAX_LINE]], None, 0)


def test_requests_before_a_mistake_come_out_and_none_after_it() -> None:
    parser = RequestParser()

    assert parser.feed(ADDJOB + b"*1\r\n!\r\n" + ADDJOB) == [[b"ADDJOB", b"q", b"body", b"0"]]
    assert parser.error is not None
    assert parser.feed(ADDJOB) == []
    assert parser.feed(b"") == []
    assert parser.buffered == 0
    assert str(parser.error) == "ERR Protocol error: expected '$', got '!'"


def test_a_long_argument_in_small_reads_is_held_once_and_counted() -> None:
    body = bytes(range(256)) * 4096
    data = encode_request([b"ADDJOB", b"q", body, b"0"])
    parser = RequestParser()

    for at in range(0, len(data) - 1000, 1000):
        assert parser.feed(data[at : at + 1000]) == []
        assert parser.buffered == at + 1000
    tail = data[(len(data) - 1) // 1000 * 1000 :]

    assert parser.feed(tail) == [[b"ADDJOB", b"q", body, b"0"]]
    assert parser.buffered == 0


def test_long_arguments_behind_each_other_are_taken_one_by_one() -> None:
    args = [b"ADDJOB", b"q", b"\r\n" * 3000, b"0"]

    assert fed([encode_request(args) * 3 + ADDJOB])[0] == [
        args, args, args, [b"ADDJOB", b"q", b"body", b"0"],
    ]  # fmt: skip


def test_a_long_argument_behind_short_requests_is_taken() -> None:
    args = [b"ADDJOB", b"q", b"x" * 5000, b"0"]

    taken = fed([ADDJOB * 2 + encode_request(args) + ADDJOB])[0]

    assert [len(request[2]) for request in taken] == [4, 4, 5000, 4]


def test_a_request_of_very_many_elements_in_pieces_is_taken() -> None:
    args = [b"ACKJOB", *[b"%d" % n for n in range(20_000)]]
    data = encode_request(args)

    taken, error, buffered = fed(data[at : at + 777] for at in range(0, len(data), 777))

    assert taken == [args]
    assert error is None
    assert buffered == 0


@given(st.lists(requests()))
def test_requests_are_read_as_written(written: list[list[bytes]]) -> None:
    data = b"".join(map(encode_request, written))

    assert fed([data]) == (written, None, 0)


@given(st.lists(st.sampled_from(FRAGMENTS)).map(b"".join) | payloads(200), cuts())
def test_bytes_mean_the_same_however_they_are_cut(data: bytes, shares: list[float]) -> None:
    whole = fed([data])

    assert fed(pieces(data, shares)) == whole
    assert fed(one_by_one(data)) == whole


@given(st.lists(requests(), min_size=1, max_size=6), st.data())
def test_damage_means_the_same_however_it_is_cut(
    written: list[list[bytes]], draw: st.DataObject
) -> None:
    data = bytearray(b"".join(map(encode_request, written)))
    place = draw.draw(st.integers(0, len(data) - 1))
    data[place] = draw.draw(st.sampled_from(b"\r\n0$*x"))
    whole = fed([bytes(data)])

    assert fed(one_by_one(bytes(data))) == whole
    assert fed(pieces(bytes(data), draw.draw(cuts()))) == whole


# Pieces.


def test_of_many_requests_only_a_piece_is_made_at_a_time() -> None:
    parser = RequestParser()
    ping = b"*1\r\n$4\r\nPING\r\n"

    assert parser.feed(ping * 4000) == []
    made = [len(parser.more())]
    assert parser.pending == parser.buffered == len(ping) * (4000 - made[0])
    while parser.pending:
        made.append(len(parser.more()))

    assert sum(made) == 4000
    assert max(made) < 600
    assert parser.buffered == parser.weight == 0


def test_fewer_lines_may_be_asked_for() -> None:
    parser = RequestParser()
    parser.feed(ADDJOB * 1000)

    assert 1 <= len(parser.more(90)) <= 20


def test_what_comes_while_something_is_pending_comes_behind_it() -> None:
    parser = RequestParser()
    parser.feed(encode_request([b"PING", b"1"]) * 1000)

    assert parser.feed(encode_request([b"PING", b"2"])) == []
    taken = parser.more()
    while parser.pending:
        taken += parser.more()

    assert taken == [[b"PING", b"1"]] * 1000 + [[b"PING", b"2"]]


def test_short_requests_behind_a_long_one_are_pieces_too() -> None:
    data = encode_request([b"ADDJOB", b"q", b"x" * 50_000, b"0"]) + b"a\n" * 5000
    parser = RequestParser()
    parser.feed(data[:40_000])

    sizes = [len(parser.feed(data[40_000:]))]
    while parser.pending:
        sizes.append(len(parser.more()))

    assert sum(sizes) == 5001
    assert max(sizes) <= 130


SPELLINGS = [
    ADDJOB,
    b"PING\r\n",
    b"*1\r\n$4\r\nPING\r\n",
    b"\n",
    b"*0\r\n",
    encode_request([b"ADDJOB", b"q", b"x\r\n" * 700, b"0"]),
    encode_request([b"ADDJOB", b"q", b"x" * 5000, b"0"]),
    encode_request([b"ACKJOB", *[b"%d" % n for n in range(300)]]),
    b"*2\r\n$4\r\nPING\r\n$2\rx12\r\n",
]


@given(st.lists(st.sampled_from(SPELLINGS), max_size=60), cuts(), st.booleans())
def test_long_streams_mean_the_same_in_any_pieces(
    spelled: list[bytes], shares: list[float], is_damaged: bool
) -> None:
    data = b"".join(spelled) + b"*x\r\n" * is_damaged
    each = [fed([one]) for one in [*spelled, b"*x\r\n" * is_damaged]]
    whole = [request for taken, _, _ in each for request in taken], each[-1][1], 0

    assert fed([data]) == whole
    assert fed(pieces(data, shares)) == whole


@given(st.lists(st.sampled_from(FRAGMENTS)).map(b"".join), cuts(), st.integers(1, 40))
def test_tiny_pieces_mean_the_same(data: bytes, shares: list[float], size: int) -> None:
    whole = fed([data])

    with pytest.MonkeyPatch.context() as patch:
        for name in ("PIECE", "_SMALL", "_MANY", "_FEW"):
            patch.setattr(f"disque_trio.wire.requests.{name}", 1 if name == "_MANY" else size)
        tiny = fed(pieces(data, shares))

    assert tiny == whole


@pytest.mark.parametrize("sent", [b"*x\r\n", b"*1\r\n!4\r\n", b'PING "\r\n'])
def test_an_error_keeps_nothing_of_the_client_alive(sent: bytes) -> None:
    """What its traceback holds holds the error: nobody would ever collect it."""
    parser = RequestParser()

    parser.feed(sent)

    assert parser.error is not None
    assert parser.error.__traceback__ is None
    assert parser.error.__context__ is None
