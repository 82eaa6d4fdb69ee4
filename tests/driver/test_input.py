"""A client that asks for much, or reads little, neither delays others nor takes their memory."""

import attrs
import pytest

from disque_trio.driver import limits
from disque_trio.driver.sessions import CHOKE, CHOKE_IN_NEED, MUCH, Session
from disque_trio.node import Node
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.knobs import DEFAULTS
from tests.node.world import World

ROOM, TURN = DEFAULTS.reply_room, DEFAULTS.client_turn

LONG = 100_000
LONG_PING = b"*2\r\n$4\r\nPING\r\n$%d\r\n%b\r\n" % (LONG, b"x" * LONG)
PING = b"PING\r\n"


@attrs.define(eq=False)
class Reader:
    """A client that reads all its replies, or none."""

    is_slow: bool = False
    told: int = 0
    """Bytes of its replies in this batch."""
    unsent: int = 0
    is_half_closed: bool = False
    is_held: bool = False
    is_over: bool = False

    def write(self, data: bytes) -> int:
        self.told += len(data)
        self.unsent += len(data) if self.is_slow else 0
        return self.unsent

    def hold(self) -> None:
        self.is_held = True

    def resume(self) -> None:
        self.is_held = False

    def close(self) -> None:
        self.is_over = True

    def abort(self) -> None:
        self.is_over = True


class Table:
    """A node with clients, whose batches the test makes."""

    def __init__(self, **config: int | bytes) -> None:
        self.world = World(Config(**config))  # type: ignore[arg-type]
        self.node: Node = self.world.node
        self.readers: list[Reader] = []

    def client(self, *, is_slow: bool = False) -> tuple[Reader, Session]:
        reader = Reader(is_slow=is_slow)
        session = self.node.connect(reader, b"127.0.0.1:50000")  # type: ignore[arg-type]
        assert session is not None
        self.readers.append(reader)
        return reader, session

    def batch(self, *sent: tuple[Session, bytes]) -> int:
        """One batch with this input; how many bytes were answered in it."""
        for reader in self.readers:
            reader.told = 0
        self.node.begin()
        for session, data in sent:
            self.node.received(session, data)
        self.node.settle()
        return sum(reader.told for reader in self.readers)


async def test_clients_that_are_answered_much_take_turns_and_others_do_not_wait() -> None:
    table = Table()
    crowd = [table.client()[1] for _ in range(100)]
    table.batch(*[(each, LONG_PING * 9) for each in crowd])
    while any(each.weight == MUCH for each in crowd):
        table.batch()
    observer, session = table.client()

    answered = table.batch((session, PING))

    assert observer.told == len("+PONG\r\n")
    assert ROOM / 2 < answered < ROOM + 2 * LONG


async def test_each_of_them_has_its_turn() -> None:
    table = Table()
    crowd = [table.client()[1] for _ in range(100)]
    table.batch(*[(session, LONG_PING * 20) for session in crowd])
    while any(session.weight == MUCH for session in crowd):
        table.batch()
    before = [len(session.backlog) for session in crowd]

    for _ in range(20):
        table.batch()

    served = [then - len(session.backlog) for then, session in zip(before, crowd, strict=True)]
    assert min(served) >= 2
    assert max(served) - min(served) <= 1


async def test_a_pipeline_of_much_is_found_out_by_its_first_answer() -> None:
    table = Table()
    _, session = table.client()
    for _ in range(2):
        table.batch((session, PING))
    assert session.weight == 0

    answered = table.batch((session, LONG_PING * 50))

    assert answered < 2 * LONG
    assert session.weight > MUCH


async def test_it_is_found_out_behind_a_request_of_little_too() -> None:
    table = Table()
    _, session = table.client()
    for _ in range(2):
        table.batch((session, PING))

    answered = table.batch((session, PING + LONG_PING * 50))

    assert answered < 10 * LONG
    assert session.weight > MUCH


async def test_a_pipeline_of_little_is_answered_at_once() -> None:
    table = Table()
    _, session = table.client()

    assert table.batch((session, PING * TURN)) == TURN * len("+PONG\r\n")


async def test_a_worker_that_has_been_given_its_job_needs_no_further_turn() -> None:
    table = Table()
    worker, waiting = table.client()
    table.batch((waiting, b"GETJOB FROM q\r\n"))

    table.batch((table.client()[1], b"ADDJOB q body 0\r\n"))

    assert worker.told
    assert table.node.deadline() > table.node.now.mono


async def test_what_a_worker_sent_while_it_waited_is_served_in_the_next_turn() -> None:
    table = Table()
    worker, waiting = table.client()
    table.batch((waiting, b"GETJOB FROM q\r\nPING\r\n"))

    table.batch((table.client()[1], b"ADDJOB q body 0\r\n"))
    told = worker.told

    assert table.node.deadline() == table.node.now.mono
    assert table.batch() == len("+PONG\r\n")
    assert told


async def test_a_client_that_was_answered_much_is_like_the_others_after_a_while() -> None:
    table = Table()
    _, session = table.client()
    table.batch((session, LONG_PING))
    table.batch((session, PING))
    assert session.weight > MUCH

    for _ in range(40):
        table.batch((session, PING))

    assert session.weight == 0


async def test_a_new_client_has_its_turn_however_little_room_a_batch_has() -> None:
    table = Table()
    table.node._input.knobs = attrs.evolve(DEFAULTS, reply_room=1)
    crowd = [table.client() for _ in range(2)]
    table.batch()

    table.batch(*[(session, b"QPEEK q 1\r\n") for _, session in crowd])
    assert [reader.told for reader, _ in crowd] == [4, 0]
    table.batch()
    assert [reader.told for reader, _ in crowd] == [0, 4]


async def test_new_clients_that_may_be_answered_much_take_turns_too() -> None:
    table = Table()
    _, session = table.client()
    table.batch((session, b"ADDJOB q %b 0\r\n" % (b"x" * 50_000)))
    crowd = [table.client()[1] for _ in range(100)]
    observer, new = table.client()

    answered = table.batch(*[(each, b"QPEEK q 1\r\n") for each in crowd], (new, PING))

    assert observer.told == len("+PONG\r\n")
    assert answered < ROOM * 2
    while any(each.backlog for each in crowd):
        assert 0 < table.batch() < ROOM * 2


# Memory.


@pytest.fixture
def _little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "most_unread", lambda _: 1_000_000)
    monkeypatch.setattr("disque_trio.driver.output.most_unread", lambda _: 1_000_000)


@pytest.mark.pure
@pytest.mark.usefixtures("_little")
async def test_when_all_together_leave_too_much_unread_those_that_leave_most_are_cut_off() -> None:
    table = Table()
    worst, worst_session = table.client(is_slow=True)
    for _ in range(3):
        table.batch((worst_session, LONG_PING))
    crowd = [table.client(is_slow=True) for _ in range(12)]

    for _, session in crowd:
        table.batch((session, LONG_PING))
    while any(session.backlog for _, session in crowd):
        table.batch()

    assert worst.is_over
    assert 0 < sum(reader.is_over for reader, _ in crowd) < 6
    assert (
        "clients disconnected: all clients together have too many unread replies"
        in table.world.log.events()
    )


@pytest.mark.pure
@pytest.mark.usefixtures("_little")
async def test_before_that_they_may_leave_less_each() -> None:
    table = Table()
    crowd = [table.client(is_slow=True) for _ in range(8)]

    for _, session in crowd:
        table.batch((session, LONG_PING))

    assert [reader.is_over for reader, _ in crowd] == [False] * 8
    assert CHOKE_IN_NEED < LONG < CHOKE
    assert crowd[0][1].is_choked is False
    assert crowd[-1][1].is_choked is True


async def test_a_reply_that_comes_from_the_journal_frees_no_client_that_is_choked_in_need() -> None:
    _, session = Table().client()
    session.set_unsent(CHOKE_IN_NEED + 1, CHOKE_IN_NEED)

    session.wait_for(10)
    session.wait_for(-10)

    assert session.is_choked


@pytest.mark.pure
@pytest.mark.usefixtures("_little")
async def test_a_single_client_may_have_an_answer_of_any_size() -> None:
    table = Table()
    reader, session = table.client(is_slow=True)

    table.batch((session, b"*2\r\n$4\r\nPING\r\n$3000000\r\n%b\r\n" % (b"x" * 3_000_000)))

    assert not reader.is_over


@pytest.mark.pure
@pytest.mark.usefixtures("_little")
async def test_a_client_that_has_read_or_has_gone_leaves_nothing_unread() -> None:
    table = Table()
    for number in range(50):
        reader, session = table.client(is_slow=True)
        table.batch((session, LONG_PING))
        reader.unsent = 0
        if number % 2:
            table.node.drained(session)
        else:
            table.node.lost(session)

    assert not any(reader.is_over for reader in table.readers)


@pytest.mark.parametrize(
    ("maxmemory", "most"), [(1 << 30, (1 << 30) // 4), (1 << 20, limits.LEAST_UNREAD)]
)
async def test_a_quarter_of_the_memory_may_be_unread(maxmemory: int, most: int) -> None:
    assert limits.most_unread(World(Config(maxmemory=maxmemory)).node.state) == most
