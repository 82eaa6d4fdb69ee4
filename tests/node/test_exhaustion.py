"""Out of memory: what is not half done is answered OOM, and all else ends the process."""

import attrs
import pytest

from disque_trio.driver import output
from disque_trio.driver.memory_probe import AHEAD_BYTES, STEP_BYTES
from disque_trio.serving.exhaustion import Exhaustion, is_exhausted
from disque_trio.statemachine.commands import table
from disque_trio.statemachine.pressure import REFUSED
from disque_trio.statemachine.state import NodeState
from disque_trio.wire.requests import RequestParser
from tests.driver.test_feeding import Backlog, Taker
from tests.node.world import MemoryLog

pytestmark = pytest.mark.pure
FULL = b"-OOM the process has not enough memory for this "


def fail(*_args: object) -> object:
    raise MemoryError


def half_done(node: NodeState, _client: object, args: list[bytes]) -> object:
    node.begun = args
    raise MemoryError


def asked(table_: Backlog, taker: Taker, session: object, request: bytes) -> bytes:
    taker.data = b""
    table_.batch((session, request))  # type: ignore[arg-type]
    return taker.data


async def test_a_request_that_cannot_be_read_is_not_carried_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backlog = Backlog(jobs=1)
    taker, session = backlog.taker(is_slow=False)
    monkeypatch.setattr(RequestParser, "feed", fail)

    answer = asked(backlog, taker, session, b"ADDJOB q b 0\r\n")

    assert answer == FULL + b"request\r\n"
    assert taker.is_over
    assert len(backlog.node.state.jobs) == 1
    assert "clients cut off: out of memory" in backlog.world.log.events()


@pytest.mark.parametrize("count", [1, 2])
async def test_a_look_that_needs_too_much_is_refused(count: int) -> None:
    backlog = Backlog(jobs=1)
    taker, session = backlog.taker(is_slow=False)
    row = table.BY_NAME["qpeek"]
    for name in (b"qpeek", b"QPEEK"):
        broken = attrs.evolve(row, handler=fail)  # type: ignore[arg-type]
        backlog.node.machine._commands[name] = broken

    answer = asked(backlog, taker, session, b"QPEEK q 1\r\n" * count + b"PING\r\n")

    assert answer == (FULL + b"command\r\n") * count + b"+PONG\r\n"


@pytest.mark.parametrize("count", [1, 2])
async def test_a_change_that_may_be_half_done_ends_the_node(count: int) -> None:
    backlog = Backlog(jobs=1)
    _, session = backlog.taker(is_slow=False)
    for name in (b"addjob", b"ADDJOB"):
        broken = attrs.evolve(table.BY_NAME["addjob"], handler=half_done)  # type: ignore[arg-type]
        backlog.node.machine._commands[name] = broken

    with pytest.raises(MemoryError):
        backlog.batch((session, b"ADDJOB q b 0\r\n" * count))


async def test_a_change_that_has_not_begun_is_refused() -> None:
    backlog = Backlog(jobs=1)
    taker, session = backlog.taker(is_slow=False)
    for name in (b"addjob", b"ADDJOB"):
        broken = attrs.evolve(table.BY_NAME["addjob"], handler=fail)  # type: ignore[arg-type]
        backlog.node.machine._commands[name] = broken

    answer = asked(backlog, taker, session, b"ADDJOB q b 0\r\nPING\r\n")

    assert answer == FULL + b"command\r\n+PONG\r\n"


async def test_a_node_asks_for_room_ahead_and_refuses_jobs_without_it() -> None:
    backlog = Backlog(jobs=1)
    taker, session = backlog.taker(is_slow=False)
    backlog.world.host.room = 0

    backlog.node._room.look_at = 0
    answer = asked(backlog, taker, session, b"ADDJOB q b 0\r\nPING\r\n")
    assert answer == b"-%b\r\n+PONG\r\n" % REFUSED.text
    events = backlog.world.log.events()
    assert "out of memory: jobs are refused until the system gives the process more" in events

    backlog.world.host.room = AHEAD_BYTES * 2
    backlog.node._room.look_at = 0
    assert asked(backlog, taker, session, b"ADDJOB q b 0\r\n")[:1] == b"+"


async def test_it_asks_again_when_its_jobs_have_grown() -> None:
    backlog = Backlog(jobs=1)
    taker, session = backlog.taker(is_slow=False)
    backlog.batch()
    backlog.world.host.room = AHEAD_BYTES

    backlog.node.state.memory.held += STEP_BYTES + 1
    answer = asked(backlog, taker, session, b"ADDJOB q b 0\r\n")

    assert answer == b"-%b\r\n" % REFUSED.text


async def test_a_reply_that_cannot_be_made_ends_its_client_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backlog = Backlog(jobs=1)
    taker, session = backlog.taker(is_slow=False)
    other, watching = backlog.taker(is_slow=False)
    monkeypatch.setattr(output, "encode_small", fail)

    backlog.batch((session, b"QPEEK q 1\r\n"), (watching, b"PING\r\n"))

    assert taker.is_over
    assert other.data == b"+PONG\r\n"


async def test_so_does_one_that_cannot_be_made_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backlog = Backlog()
    taker, session = backlog.taker()
    backlog.batch((session, b"QPEEK q 9999\r\n"))
    assert session.pending is not None
    monkeypatch.setattr(type(session.pending), "take", fail)

    backlog.read(taker, session)
    backlog.batch()

    assert taker.is_over


def test_the_end_is_told_and_has_status_1() -> None:
    log = MemoryLog()
    left: list[int] = []
    exhaustion = Exhaustion(log, left.append)

    with exhaustion.fatal():
        fail()

    assert left == [1]
    assert log.events() == [
        "out of memory: this process exits; give it more memory, or lower maxmemory"
    ]


def test_memory_is_found_in_causes_and_groups() -> None:
    crash = RuntimeError()
    crash.__cause__ = ExceptionGroup("", [ValueError(), MemoryError()])

    assert is_exhausted(crash)
    assert not is_exhausted(ExceptionGroup("", [crash.__class__()]))
