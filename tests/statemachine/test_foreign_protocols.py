import pytest

from disque_trio.statemachine.base import OK, Failure
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.config import Config
from tests.rig import Rig

HTTP = [
    "POST / HTTP/1.1",
    "post / http/1.1",
    "PoSt",
    "GET / HTTP/1.1",
    "get /path HTTP/1.0",
    "PUT /x HTTP/1.1",
    "HEAD / HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "DELETE / HTTP/1.1",
    "PATCH / HTTP/1.1",
    "CONNECT 127.0.0.1:7711 HTTP/1.1",
    "PROPFIND / HTTP/1.1",
    "PRI * HTTP/2.0",
    "Host: localhost:7711",
    "host:",
    "Content-Type: text/plain",
    "X:y",
    "Origin:http://evil.example",
]


@pytest.mark.parametrize("words", HTTP)
@pytest.mark.parametrize("password", [b"", b"geheim"])
def test_words_of_http_end_the_connection_without_an_answer(words: str, password: bytes) -> None:
    rig = Rig(config=Config(requirepass=password))

    rig.request(*words.split())

    assert rig.closed() == [rig.client]
    assert rig.replies() == []
    assert not rig.offer("ADDJOB", "q", "body", 0)


@pytest.mark.parametrize("words", HTTP)
def test_words_of_http_end_the_connection_of_an_authenticated_client(words: str) -> None:
    rig = Rig(config=Config(requirepass=b"geheim"))
    assert rig.ask("AUTH", "geheim") == OK

    rig.request(*words.split())

    assert rig.closed() == [rig.client]


def test_they_do_so_after_a_refused_multi_and_where_replies_are_off() -> None:
    for before in (("MULTI",), ("CLIENT", "REPLY", "OFF")):
        rig = Rig()
        rig.request(*before)
        rig.replies()

        rig.request("POST", "/", "HTTP/1.1")

        assert rig.closed() == [rig.client]


def test_they_are_counted_by_their_reason() -> None:
    rig = Rig()
    rig.request("POST", "/", "HTTP/1.1")

    assert rig.node.stats.connections_rejected == {"http": 1}


OTHERS = {
    "Host : localhost": "http",
    "PROXY TCP4 192.0.2.1 192.0.2.2 5555 7711": "proxy-protocol",
    "PROXY UNKNOWN": "proxy-protocol",
    "EHLO example.com": "other-protocol",
    "helo example.com": "other-protocol",
    "LHLO example.com": "other-protocol",
    "RCPT TO:<a@example.com>": "other-protocol",
    "SSH-2.0-OpenSSH_9.0": "other-protocol",
    "set key 0 0 48": "other-protocol",
    "add key 0 60 48 noreply": "other-protocol",
    "cas key 0 0 48 7": "other-protocol",
    "AMQP\0\0\t\x01": "other-protocol",
    "\x16\x03\x01": "other-protocol",
    "\x80": "other-protocol",
}


@pytest.mark.parametrize("line", OTHERS)
def test_words_of_other_protocols_end_the_connection_and_are_counted(line: str) -> None:
    rig = Rig()

    rig.request(*(word.encode("latin-1") for word in line.split(" ")))

    assert rig.closed() == [rig.client]
    assert rig.replies() == []
    assert rig.node.stats.connections_rejected == {OTHERS[line]: 1}


@pytest.mark.parametrize(
    "words",
    [
        ["GET", "key"],
        ["GET", ":key"],
        ["SET", "key", "0", "EX", "10"],
        ["SET", "key", "0", "0"],
        ["ZADD", "key", "0", "1", "2"],
        ["GET", "/path"],
        ["SET", "key", "value"],
        ["COPY", "a", "b"],
        ["MOVE", "key", "1"],
        ["ACL", "WHOAMI"],
        ["SEARCH"],
        ["JSON.GET", "key"],
        ["DEL", "a:b"],
        ["FT.SEARCH", "index", "@a:b"],
    ],
)
def test_commands_of_redis_are_answered_as_unknown(words: list[str]) -> None:
    rig = Rig()

    assert isinstance(rig.ask(*words), Failure)
    assert rig.closed() == []
    assert rig.client.blocked is Blocked.NO
