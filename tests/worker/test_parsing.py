"""The parser in C and the project's own say the same of all that a worker looks at."""

import subprocess
import sys

import pytest

from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply, Status
from disque_trio.wire.resp import ProtocolError, ReplyParser
from disque_trio.worker.parsing import FastParser, Parser

BYTES = (
    b"+OK\r\n-LOST The job\r\n:60\r\n$-1\r\n*-1\r\n*0\r\n"
    b"*2\r\n*5\r\n$1\r\nq\r\n$3\r\nD-1\r\n$0\r\n\r\n$5\r\nnacks\r\n:3\r\n*1\r\n$2\r\n\r\n\r\n"
    b"*3\r\n:1\r\n-NOJOB no\r\n:-2\r\n$3\r\n\x00\xff\n\r\n"
)
REPLIES: list[Reply] = [
    b"OK",
    Failure(b"LOST The job"),
    60,
    None,
    None,
    [],
    [[b"q", b"D-1", b"", b"nacks", 3], [b"\r\n"]],
    [1, Failure(b"NOJOB no"), -2],
    b"\x00\xff\n",
]

both = pytest.mark.parametrize("parser", [ReplyParser, FastParser])


def plain(reply: Reply) -> Reply:
    """Without the differences of which a worker knows nothing."""
    if isinstance(reply, Status):
        return reply.text
    return None if reply is NULL_ARRAY else reply


@both
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_both_parsers_say_the_same(parser: type[Parser], size: int) -> None:
    made = parser()
    pieces = [BYTES[at : at + size] for at in range(0, len(BYTES), size)]
    replies = [reply for piece in pieces for reply in made.feed(piece)]

    assert list(map(plain, replies)) == REPLIES


@both
def test_what_is_no_reply_is_refused(parser: type[Parser]) -> None:
    with pytest.raises(ProtocolError):
        parser().feed(b"HTTP/1.1 400 Bad Request\r\n")


@pytest.mark.parametrize("is_there", [True, False])
def test_hiredis_is_used_if_it_is_installed(*, is_there: bool) -> None:
    hide = "" if is_there else "sys.modules['hiredis'] = None;"
    script = f"import sys;{hide}from disque_trio.worker.parsing import make_parser as made;"
    wanted = "FastParser" if is_there else "ReplyParser"
    script += f"assert made.__name__ == '{wanted}'"
    subprocess.run([sys.executable, "-c", script], check=True)
