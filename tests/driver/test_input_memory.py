"""Requests that the node has not served yet: accounted, bounded, and served in turns."""

import gc
import tracemalloc

import pytest
import trio

from disque_trio.driver.limits import most_unread
from disque_trio.driver.sessions import Session
from disque_trio.statemachine.knobs import DEFAULTS
from tests.driver.test_input import PING, Reader, Table

CANONICAL_PING = b"*1\r\n$4\r\nPING\r\n"
MB = 1 << 20
LITTLE = 1_000_000
CUT_OFF = "clients disconnected: all clients together have too many pending requests"


def unread(table: Table) -> int:
    return table.node.state.facts.traffic.unread


def pause(table: Table) -> None:
    """Let requests wait for the node, by no fault of the clients."""
    table.batch((table.client()[1], b"CLIENT PAUSE 100000\r\n"))


@pytest.fixture
def _little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("disque_trio.driver.senders.LEAST_UNREAD", 0)
    monkeypatch.setattr("disque_trio.driver.senders.most_unread", lambda _: LITTLE)


@pytest.mark.slow
@pytest.mark.parametrize("request_", [CANONICAL_PING, PING, b"a\n", b"*1\r\n$0\r\n\r\n"])
async def test_requests_that_wait_take_little_more_than_their_bytes_and_are_accounted(
    request_: bytes,
) -> None:
    table = Table()
    pause(table)
    crowd = [table.client()[1] for _ in range(50)]
    data = request_ * (65_536 // len(request_))
    gc.collect()
    tracemalloc.start()

    for session in crowd:
        table.batch((session, data[:-2] + data[-2:]))
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert taken < 1.5 * 50 * len(data)
    assert 0.8 * taken < unread(table) < 1.3 * taken


@pytest.mark.slow
async def test_a_request_that_is_not_complete_is_accounted_with_its_arguments() -> None:
    table = Table()
    _, session = table.client()
    half = b"*1048576\r\n" + b"$2\r\nab\r\n" * 8000
    table.batch((session, PING))
    gc.collect()
    tracemalloc.start()

    table.batch((session, half[:-2] + half[-2:]))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 0.8 * taken < unread(table) < 1.3 * taken


async def test_what_has_been_carried_out_or_whose_client_has_gone_is_not_accounted_any_more() -> (
    None
):
    table = Table()
    _, done = table.client()
    _, gone = table.client()
    table.batch((done, CANONICAL_PING * 2000), (gone, CANONICAL_PING * 4000))
    assert unread(table) > 60_000

    while done.has_requests:
        table.batch()
    table.node.lost(gone)

    assert unread(table) == done.input == 0


async def test_a_body_that_came_in_pieces_is_not_accounted_any_more_once_it_is_complete() -> None:
    table = Table()
    _, session = table.client()
    table.batch((session, b"*4\r\n$6\r\nADDJOB\r\n$1\r\nq\r\n$9000\r\n" + b"x" * 5000))
    assert 5000 < unread(table) < 7000

    table.batch((session, b"x" * 4000 + b"\r\n$1\r\n0\r\n"))

    assert unread(table) == 0
    assert len(table.node.state.jobs) == 1


@pytest.mark.pure
@pytest.mark.usefixtures("_little")
async def test_beyond_the_bound_clients_that_have_stalled_for_longest_are_cut_off() -> None:
    table = Table()
    half = b"*2\r\n$4\r\nPING\r\n$500000\r\n" + b"x" * 99_000
    idle = [table.client() for _ in range(9)]
    for _, session in idle:
        table.batch((session, half))
    await trio.sleep(2)
    fresh, fresh_session = table.client()

    table.batch((fresh_session, half + half))

    assert not fresh.is_over
    assert 2 <= sum(reader.is_over for reader, _ in idle) <= 4
    assert CUT_OFF in table.world.log.events()


@pytest.mark.pure
@pytest.mark.usefixtures("_little")
async def test_a_single_client_may_send_a_request_of_any_size() -> None:
    table = Table()
    reader, session = table.client()

    table.batch((session, b"*2\r\n$4\r\nPING\r\n$5000000\r\n" + b"x" * 4_000_000))

    assert not reader.is_over


@pytest.mark.pure
@pytest.mark.usefixtures("_little")
async def test_a_client_that_waits_for_this_node_is_not_cut_off_but_less_is_read() -> None:
    table = Table()
    told: list[bool] = []
    table.node.on_crowded(told.append)
    pause(table)
    crowd = [table.client() for _ in range(40)]

    for _, session in crowd:
        table.batch((session, CANONICAL_PING * 4000))

    assert not any(reader.is_over for reader in table.readers)
    assert told == [True]
    for _, session in crowd:
        table.node.lost(session)
    assert told == [True, False]


async def test_clients_that_do_not_read_hold_no_more_than_the_bound() -> None:
    table = Table(maxmemory=128 * MB)
    table.node.state.facts.process_bytes = 40 * MB
    crowd = [table.client(is_slow=True) for _ in range(700)]
    left: dict[tuple[Reader, Session], int] = dict.fromkeys(crowd, 4)
    sizes = [4600]
    table.node.on_crowded(lambda is_crowded: sizes.append(300 if is_crowded else 4600))

    for _ in range(100):
        table.node.begin()
        for reader, session in crowd:
            if left[reader, session] and not reader.is_held and not reader.is_over:
                left[reader, session] -= 1
                table.node.received(session, CANONICAL_PING * sizes[-1])
        table.node.settle()
        for reader, session in crowd:
            if reader.is_over and session.client.id in table.node.state.clients:
                table.node.lost(session)

    assert unread(table) < most_unread(table.node.state) + 65_536


# Turns.


async def test_pipelines_take_turns_and_a_client_that_sends_little_does_not_wait() -> None:
    table = Table()
    crowd = [table.client() for _ in range(100)]
    table.batch(*[(session, CANONICAL_PING * 4000) for _, session in crowd])
    newcomer, session = table.client()
    pong = len(b"+PONG\r\n")

    answered = table.batch((session, PING * DEFAULTS.least_turn))

    assert newcomer.told == DEFAULTS.least_turn * pong
    assert answered <= (DEFAULTS.turn_of_all + 128 + DEFAULTS.least_turn) * pong
    told = [0] * len(crowd)
    for _ in range(20):
        table.batch()
        told = [before + reader.told for before, (reader, _) in zip(told, crowd, strict=True)]
    assert min(told) >= 2 * 128 * pong
    assert max(told) - min(told) <= 128 * pong


async def test_an_unauthenticated_client_is_answered_a_few_requests_per_batch() -> None:
    table = Table(requirepass=b"secret")
    reader, session = table.client()
    refusal = len(b"-NOAUTH Authentication required.\r\n")

    table.batch((session, PING * 100))

    assert reader.told == DEFAULTS.least_turn * refusal
    table.batch()
    assert reader.told == DEFAULTS.least_turn * refusal


async def test_a_password_before_a_pipeline_lifts_the_limits() -> None:
    table = Table(requirepass=b"secret")
    reader, session = table.client()

    table.batch((session, b"AUTH secret\r\n" + PING * 100))
    table.batch()

    assert reader.told > DEFAULTS.least_turn * len(b"+PONG\r\n")
    assert not session.has_requests
