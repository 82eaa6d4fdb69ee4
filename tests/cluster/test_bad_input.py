"""Malformed and hostile input of clients to a real server, which goes on serving."""

import contextlib
import re
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from tests.cluster.processes import SOON_S, Cluster, Server, becomes
from tests.cluster.talk import (
    LOOPBACK,
    PATIENCE_S,
    ClosedError,
    RefusedError,
    Word,
    as_items,
    as_text,
    connection,
    request,
)

pytestmark = pytest.mark.parametrize("multiplexing", ["epoll", "tasks"], scope="module")

UNKNOWN: Final = "D-!!!!!!!!-????????????????????????-zzzz"
"""A job id that is well formed, and no more than that."""
LIMIT: Final = 65_536


@pytest.fixture(autouse=True)
def goes_on(server: Server) -> Iterator[None]:
    """After every test the node answers, and has no more memory than it should."""
    before = server.rss_mib()
    yield
    assert server.client.text("PING") == b"PONG"
    assert server.rss_mib() - before < 64


def said_before_closing(port: int, data: bytes) -> bytes:
    """All that the server answers to these bytes, until it closes the connection."""
    with socket.create_connection((LOOPBACK, port), PATIENCE_S) as client:
        client.sendall(data)
        said = b""
        while more := client.recv(LIMIT):
            said += more
        return said


# Malformed requests.


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"A" * (LIMIT + 1), "too big inline request"),
        (b'PING "open\r\n', "unbalanced quotes in request"),
        (b'PING "open"shut\r\n', "unbalanced quotes in request"),
        (b"*" + b"1" * LIMIT, "too big mbulk count string"),
        (b"*two\r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*01\r\n", "invalid multibulk length"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*1\r\n$" + b"1" * LIMIT, "too big bulk count string"),
        (b"*1\r\nPING\r\n", "expected '$', got 'P'"),
        (b"*1\r\n:4\r\n", "expected '$', got ':'"),
        (b"*1\r\n$four\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n$99999999999999999999\r\n", "invalid bulk length"),
    ],
)
def test_what_is_not_a_request_is_named_and_ends_the_connection(
    server: Server, data: bytes, complaint: str
) -> None:
    assert (
        said_before_closing(server.port, data) == f"-ERR Protocol error: {complaint}\r\n".encode()
    )


def test_requests_in_front_of_a_mistake_are_answered(server: Server) -> None:
    data = request("PING") + b"PING inline\r\n" + b"*1\r\n!\r\n" + request("PING")

    assert said_before_closing(server.port, data) == (
        b"+PONG\r\n$6\r\ninline\r\n-ERR Protocol error: expected '$', got '!'\r\n"
    )


def test_the_connection_of_a_browser_is_closed(server: Server) -> None:
    with connection(server.port) as browser:
        browser.send_raw(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nADDJOB browser x 0\r\n")

        with pytest.raises(ClosedError):
            browser.receive()
    with connection(server.port) as client:
        assert client.number("QLEN", "browser") == 0


# Inline requests.


def test_inline_requests_and_arrays_may_be_mixed(server: Server) -> None:
    with connection(server.port) as client:
        client.send_raw(
            b"\r\n*0\r\n*-1\r\nPING\n"
            + request("PING", "array")
            + b"ADDJOB inline 'a \\'b\\'' 0\r\n  QPEEK\tinline \"1\" \r\n"
        )

        assert as_text(client.receive()) == b"PONG"
        assert as_text(client.receive()) == b"array"
        job = as_text(client.receive())
        assert client.receive() == [[b"inline", job, b"a 'b'"]]


def test_inline_escapes_make_any_byte(server: Server) -> None:
    with connection(server.port) as client:
        client.send_raw(b'PING "\\x00\\xff\\r\\n\\t\\\\\\""\r\n')

        assert client.receive() == b'\x00\xff\r\n\t\\"'


# Commands that are wrong.


def test_every_command_counts_its_arguments(server: Server) -> None:
    arities = {}
    for row in as_items(server.client.call("COMMAND")):
        name, arity = as_items(row)[:2]
        assert isinstance(arity, int)
        arities[as_text(name).decode()] = arity
    picky = {name: arity for name, arity in arities.items() if abs(arity) > 1}
    assert len(picky) >= 15

    for command in picky:
        with pytest.raises(RefusedError, match=f"^ERR wrong number of arguments for '{command}'"):
            server.client.call(command.upper())


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("NOSUCH", "x"), "ERR unknown command 'NOSUCH'"),
        (("a\r\nb",), "ERR unknown command 'a  b'"),
        (("ADDJOB", "q", "b", "soon"), "ERR timeout is not an integer or out of range"),
        (("ADDJOB", "q", "b", -1), "ERR timeout is negative"),
        (("ADDJOB", "q", "b", 0, "REPLICATE", 0), "ERR REPLICATE must be between 1 and 65535"),
        (("ADDJOB", "q", "b", 0, "REPLICATE", 65536), "ERR REPLICATE must be between 1 and 65535"),
        (("ADDJOB", "q", "b", 0, "TTL", 0), "ERR TTL must be a number > 0"),
        (("ADDJOB", "q", "b", 0, "RETRY", "1.5"), "ERR RETRY time must be a non negative number"),
        (("ADDJOB", "q", "b", 0, "DELAY", 1 << 64), "ERR DELAY time must be a non negative number"),
        (("ADDJOB", "q", "b", 0, "MAXLEN", "-1"), "ERR MAXLEN must be a positive number"),
        (("ADDJOB", "q", "b", 0, "RETRY"), "ERR syntax error"),
        (("ADDJOB", "q", "b", 0, "SOON"), "ERR syntax error"),
        (("GETJOB", "q"), "ERR syntax error"),
        (("GETJOB", "FROM"), "ERR syntax error"),
        (("GETJOB", "COUNT", "x", "FROM", "q"), "ERR COUNT must be a number greater than zero"),
        (("GETJOB", "TIMEOUT", -5, "FROM", "q"), "ERR timeout is negative"),
        (("QPEEK", "q", "all"), "ERR value is not an integer or out of range"),
        (("QSCAN", "nowhere"), "ERR invalid cursor or option name"),
        (("JSCAN", "0", "STATE", "lost"), "ERR Invalid job state name"),
        (("PAUSE", "q", "sideways"), "ERR syntax error"),
        (
            ("CLUSTER", "MEET", LOOPBACK, 70000),
            f"ERR Invalid node address specified: {LOOPBACK}:70000",
        ),
        (("CLUSTER", "FORGET", "x"), "ERR Invalid node identifier"),
    ],
)
def test_mistakes_are_answered_with_the_originals_words_first(
    server: Server, words: tuple[Word, ...], error: str
) -> None:
    with pytest.raises(RefusedError) as refusal:
        server.client.call(*words)

    # What was wrong follows; it is tested where the texts are.
    assert re.fullmatch(re.escape(error) + "(: .*|; .*| \\(did .*)?", str(refusal.value))


@pytest.mark.parametrize(
    "command", ["ACKJOB", "FASTACK", "DELJOB", "ENQUEUE", "NACK", "DEQUEUE", "WORKING", "SHOW"]
)
@pytest.mark.parametrize(
    "malformed", ["", "D-", "x" * 40, UNKNOWN[:-1], UNKNOWN + "0", "d" + UNKNOWN[1:]]
)
def test_a_malformed_id_spoils_the_whole_command(
    server: Server, command: str, malformed: str
) -> None:
    job = server.client.add("ids", "b")
    ids = (malformed,) if command in {"WORKING", "SHOW"} else (job, malformed)

    with pytest.raises(RefusedError, match=r"^BADID Invalid Job ID format\. "):
        server.client.call(command, *ids)

    assert server.client.state(job) == b"queued"


def test_an_id_that_is_only_well_formed_is_unknown(server: Server) -> None:
    client = server.client

    counts = [client.number(c, UNKNOWN) for c in ("ACKJOB", "FASTACK", "DELJOB", "NACK")]

    assert counts == [0] * 4
    assert client.call("SHOW", UNKNOWN) is None
    with pytest.raises(RefusedError, match=r"^NOJOB Job not known in the context of this node"):
        client.call("WORKING", UNKNOWN)


# Large requests, and clients that do not read.


def test_a_body_of_megabytes_comes_back_whole(server: Server) -> None:
    body = bytes(range(256)) * (32 << 10)

    job = server.client.add("large", body)

    assert [(taken.id, taken.body) for taken in server.client.get("large")] == [(job, body)]
    server.client.call("DELJOB", job)


def test_what_is_announced_is_not_reserved(server: Server) -> None:
    with ExitStack() as clients:
        for _ in range(50):
            client = clients.enter_context(connection(server.port))
            client.send_raw(b"*1048576\r\n$536870912\r\n" + b"x" * 1000)

        assert server.client.text("PING") == b"PONG"


def test_a_client_that_never_reads_is_not_served_for_ever(server: Server) -> None:
    job = server.client.add("hoard", b"x" * 100_000)
    asked = request("QPEEK", "hoard", 1) * 100
    before = server.rss_mib()

    with socket.create_connection((LOOPBACK, server.port), PATIENCE_S) as hoarder:
        hoarder.settimeout(1)
        with contextlib.suppress(TimeoutError):
            for _ in range(1000):  # for 10 GB of replies
                hoarder.sendall(asked)

        assert server.client.text("PING") == b"PONG"
        assert server.rss_mib() - before < 32
    server.client.call("DELJOB", job)


def test_two_thousand_connections_are_served_at_once(server: Server) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with ExitStack() as all_of_them:
            clients = [all_of_them.enter_context(connection(server.port)) for _ in range(2000)]
            for client in clients:
                client.send("ADDJOB", "crowd", "b", 0)
            jobs = {as_text(client.receive()) for client in clients}
            for client in clients:
                client.send("GETJOB", "FROM", "crowd")
            taken = {as_text(as_items(as_items(client.receive())[0])[1]) for client in clients}

            assert len(jobs) == 2000
            assert taken == jobs
            assert int(server.client.info("clients")["connected_clients"]) >= 2000
        becomes(
            lambda: server.client.info("clients")["connected_clients"],
            "1",
            SOON_S,
            "they have gone",
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_senders_of_single_bytes_are_understood(server: Server) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(connection(server.port)) for _ in range(20)]
        requests = [request("ADDJOB", "drops", n, 0) for n in range(10)]
        requests += [b"ADDJOB drops %02d 0\r\n" % n for n in range(10, 20)]
        for i in range(max(map(len, requests))):
            for client, data in zip(clients, requests, strict=True):
                client.send_raw(data[i : i + 1])

        jobs = [as_text(client.receive()) for client in clients]

    assert {job.id for job in server.client.get("drops", count=20)} == set(jobs)


# Clients that go away while they wait.


def test_a_client_that_leaves_getjob_takes_no_job_with_it(server: Server) -> None:
    with connection(server.port) as client:
        client.send("GETJOB", "FROM", "left")
        becomes(lambda: blocked(server), 1, SOON_S, "blocked clients")
    becomes(lambda: blocked(server), 0, SOON_S, "blocked clients")

    job = server.client.add("left", "b")

    assert [taken.id for taken in server.client.get("left")] == [job]


@pytest.mark.sample(2)
def test_a_job_whose_client_leaves_addjob_is_taken_back(pair: Cluster) -> None:
    pair[1].freeze()
    try:
        with connection(pair[0].port) as client:
            client.send("ADDJOB", "left", "b", 0, "REPLICATE", 2)
            becomes(lambda: blocked(pair[0]), 1, SOON_S, "blocked clients")
            assert pair[0].client.registered_jobs() == 1

        becomes(pair[0].client.registered_jobs, 0, SOON_S, "jobs where it was added")
    finally:
        pair[1].thaw()
    pair.wait_empty(SOON_S)


def blocked(server: Server) -> int:
    return int(server.client.info("clients")["blocked_clients"])
