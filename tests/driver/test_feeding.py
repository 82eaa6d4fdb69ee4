"""Large replies are made as they are read: they take little memory, and delay nobody."""

import attrs
import pytest

from disque_trio.driver import feeding
from disque_trio.driver.sessions import MUCH, Session
from disque_trio.statemachine.base import Failure, Reply, Status
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.wire.replies import encode_reply
from disque_trio.wire.resp import ReplyParser
from tests.driver.test_input import PING, Reader, Table
from tests.wire.test_resp_replies import Unreadable

FEW = DEFAULTS.peeked_at_once

BODY = b"x" * 2000
JOBS = 3000
QPEEK = b"QPEEK q 1000000\r\n"
JSCAN = b"JSCAN 0 COUNT 20000 REPLY all\r\n"
BUSYLOOP = b"JSCAN 0 BUSYLOOP REPLY all\r\n"


@attrs.define(eq=False)
class Taker(Reader):
    """A client that reads when it is told to."""

    data: bytes = b""

    def write(self, data: bytes) -> int:
        self.data += data
        return super().write(data)


def asked(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


class Backlog(Table):
    """A node with a backlog."""

    def __init__(self, jobs: int = JOBS, body: bytes = BODY, **config: int | bytes) -> None:
        super().__init__(**config)
        _, self.producer = self.client()
        machine, client = self.node.machine, self.producer.client
        for number in range(jobs):
            machine.request(client, [b"ADDJOB", b"q", body + b"%d" % number, b"0"], self.node.now)
        self.batch()

    def taker(self, *, is_slow: bool = True) -> tuple[Taker, Session]:
        taker = Taker(is_slow=is_slow)
        session = self.node.connect(taker, b"127.0.0.1:50000")  # type: ignore[arg-type]
        assert session is not None
        self.readers.append(taker)
        return taker, session

    def read(self, taker: Taker, session: Session) -> None:
        """The client reads what has been written to it."""
        self.node.begin()
        if taker.unsent:
            taker.unsent = 0
            self.node.drained(session)
        self.node.settle()

    def finish(self) -> None:
        """Let commands about many jobs end."""
        while self.node.state.long_commands:
            self.batch()

    def read_all(self, taker: Taker, session: Session) -> list[Reply]:
        while session.pending is not None or taker.unsent:
            self.read(taker, session)
        return ReplyParser().feed(taker.data)


@pytest.mark.parametrize("request_", [QPEEK, JSCAN, BUSYLOOP, b"GETJOB COUNT 100000 FROM q\r\n"])
async def test_a_large_reply_is_made_as_it_is_read(request_: bytes) -> None:
    table = Backlog()
    taker, session = table.taker()
    most = 0

    table.batch((session, request_))
    table.finish()
    while session.pending is not None or taker.unsent:
        most = max(most, taker.unsent)
        table.read(taker, session)

    assert most < 2 * DEFAULTS.piece_bytes
    (reply,) = ReplyParser().feed(taker.data)
    assert isinstance(reply, list)
    assert len(reply[1] if len(reply) == 2 else reply) == JOBS  # type: ignore[arg-type]
    assert encode_reply(reply) == taker.data


@pytest.mark.parametrize("body", [b"x" * 200_000, b"x" * 3_000_000])
async def test_so_is_one_of_few_large_bodies(body: bytes) -> None:
    table = Backlog(jobs=2, body=body)
    taker, session = table.taker()

    table.batch((session, b"GETJOB COUNT 2 FROM q\r\n"))

    assert taker.unsent < 2 * DEFAULTS.piece_bytes
    jobs = table.read_all(taker, session)[0]
    assert [job[2][:-1] for job in jobs] == [body, body]  # type: ignore[index, union-attr]


@pytest.mark.parametrize("request_", [QPEEK, JSCAN, BUSYLOOP, b"GETJOB COUNT 60 FROM q\r\n"])
async def test_many_of_them_at_once_delay_nobody(request_: bytes) -> None:
    table = Backlog(jobs=800)
    crowd = [table.taker(is_slow=False) for _ in range(12)]
    table.batch(*[(session, PING) for _, session in crowd])
    table.batch(*[(session, PING) for _, session in crowd])
    assert not any(session.weight for _, session in crowd)
    observer, watching = table.taker(is_slow=False)

    answered = [table.batch(*[(session, request_) for _, session in crowd], (watching, PING))]
    told = observer.data
    while table.node._input.ready or table.node._output.feeding.clients:
        answered.append(table.batch())

    assert told == b"+PONG\r\n"
    assert max(answered) < 3 * DEFAULTS.feed_room
    assert all(len(ReplyParser().feed(taker.data)) == 3 for taker, _ in crowd)


async def test_requests_behind_it_wait_and_are_answered_in_order() -> None:
    table = Backlog()
    taker, session = table.taker()

    table.batch((session, b"PING\r\n" + QPEEK * 2 + b"QLEN q\r\n"))

    assert session.is_held
    assert session.is_choked
    for _ in range(4):
        replies = table.read_all(taker, session)
        table.batch()
    first, one, other, length = replies
    assert len(one) == len(other) == JOBS  # type: ignore[arg-type]
    assert (first, length) == (ReplyParser().feed(b"+PONG\r\n")[0], JOBS)
    assert not session.is_held


async def test_what_a_monitor_is_shown_meanwhile_comes_behind_it() -> None:
    table = Backlog()
    taker, session = table.taker()
    table.batch((session, b"MONITOR\r\n"))
    table.read(taker, session)
    table.batch((session, QPEEK))

    table.batch((table.producer, b"QLEN other\r\n"))

    assert session.pending is not None
    assert session.pending.behind > 0
    replies = table.read_all(taker, session)
    assert [len(each) == JOBS for each in replies if isinstance(each, list)] == [True]
    assert b"QLEN" in repr(replies[-1]).encode()


async def test_a_job_that_goes_meanwhile_is_shown_as_it_was() -> None:
    table = Backlog()
    taker, session = table.taker()
    table.batch((session, QPEEK))
    last = list(table.node.state.jobs)[-1]

    table.batch((table.producer, b"DELJOB " + last + b"\r\n"))

    jobs = table.read_all(taker, session)[0]
    assert isinstance(jobs, list)
    assert jobs[-1] == [b"q", last, BODY + b"%d" % (JOBS - 1)]


async def test_a_client_that_reads_nothing_is_cut_off_by_the_limit_of_output() -> None:
    limit = (1 << 20, 0, 0)
    table = Backlog(client_output_buffer_limit=limit)  # type: ignore[arg-type]
    fast, reading = table.taker()
    slow, stalled = table.taker()
    table.batch((reading, QPEEK), (stalled, QPEEK))

    for _ in range(3):
        table.read(fast, reading)
        for taker, session in ((fast, reading), (slow, stalled)):
            if not taker.is_over:
                table.node.owes(session, taker.unsent)

    assert slow.is_over
    assert not fast.is_over
    assert "client disconnected: output buffer limit" in table.world.log.events()
    info, asking = table.taker(is_slow=False)
    table.batch((asking, b"INFO stats\r\n"))
    assert b"client_output_buffer_limit_disconnections:1" in info.data


async def test_clients_that_read_nothing_are_cut_off_when_all_together_leave_too_much() -> None:
    table = Backlog(maxmemory=64 << 20)
    crowd = [table.taker() for _ in range(20)]
    for _, session in crowd:
        table.batch((session, QPEEK))
    while any(session.has_requests for _, session in crowd):
        table.batch()

    for _ in range(2):
        for taker, session in crowd:
            table.node.owes(session, taker.unsent)

    assert 0 < sum(taker.is_over for taker, _ in crowd) < len(crowd)


async def test_what_only_a_stalled_reply_keeps_in_memory_is_accounted() -> None:
    table = Backlog()
    taker, session = table.taker()
    table.batch((session, QPEEK))
    traffic = table.node.state.facts.traffic
    for _ in range(3):
        table.node.owes(session, taker.unsent)
    assert traffic.kept == 0
    assert session.promised > JOBS * len(BODY) / 2

    table.batch((table.producer, asked(b"DELJOB", *table.node.state.jobs)))
    table.finish()
    table.node.owes(session, taker.unsent)

    assert traffic.kept > JOBS * len(BODY) / 2
    table.node.lost(session)
    assert traffic.kept == 0


async def test_a_client_that_goes_ends_its_iteration() -> None:
    table = Backlog()
    taker, session = table.taker()
    table.batch((session, QPEEK + BUSYLOOP))
    table.batch()
    table.read(taker, session)

    table.node.lost(session)

    assert not table.node.state.table._walks
    assert not table.node._output.feeding.clients


async def test_a_client_that_is_ended_still_gets_its_reply() -> None:
    table = Backlog()
    taker, session = table.taker()
    table.batch((session, QPEEK))
    table.node._output._close(session.client)
    early = taker.is_over

    replies = table.read_all(taker, session)

    assert (early, taker.is_over) == (False, True)
    assert len(replies[0]) == JOBS  # type: ignore[arg-type]


async def test_unless_it_does_not_read_on() -> None:
    table = Backlog()
    taker, session = table.taker()
    table.batch((session, QPEEK))
    table.node._output._close(session.client)

    ends = []
    for _ in range(feeding.LINGER_S + 1):
        table.node.owes(session, taker.unsent)
        ends.append(taker.is_over)

    assert ends == [False] * feeding.LINGER_S + [True]


async def test_a_client_that_reads_its_large_reply_is_one_with_large_replies() -> None:
    table = Backlog()
    taker, session = table.taker()
    table.batch((session, QPEEK))
    table.read_all(taker, session)

    assert session.weight > MUCH


async def test_a_list_of_many_small_values_is_not_delayed() -> None:
    table = Backlog(jobs=FEW + 1, body=b"")
    taker, session = table.taker(is_slow=False)

    table.batch((session, b"QPEEK q %d\r\n" % (FEW + 1)))

    assert session.pending is None
    assert not session.is_held
    assert len(ReplyParser().feed(taker.data)[0]) == FEW + 1  # type: ignore[arg-type]


async def test_errors_are_replies_like_others() -> None:
    table = Backlog()
    taker, session = table.taker()

    table.batch((session, QPEEK + b"NOSUCH\r\n"))

    table.read_all(taker, session)
    table.batch()
    assert isinstance(table.read_all(taker, session)[-1], Failure)


@pytest.mark.parametrize("first", [True, False])
async def test_a_body_that_cannot_be_read_is_an_error_in_its_place_or_the_whole_reply(
    *, first: bool
) -> None:
    table = Backlog()
    taker, session = table.taker()
    jobs = list(table.node.state.jobs.values())
    jobs[0 if first else -1].body = Unreadable(9)

    table.batch((session, QPEEK + PING))

    table.read_all(taker, session)
    table.batch()
    reply, pong = ReplyParser().feed(taker.data)
    assert pong == Status(b"PONG")
    if first:
        assert isinstance(reply, Failure)
    else:
        assert isinstance(reply, list)
        assert [len(job) if isinstance(job, list) else 0 for job in reply[-2:]] == [3, 0]
