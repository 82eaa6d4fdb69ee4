"""What waits for its turn costs nothing while others are served."""

import pytest

from disque_trio.driver.ready import Ready
from disque_trio.driver.sessions import MUCH, Session
from disque_trio.statemachine.knobs import DEFAULTS
from tests.driver.test_input import Table

ROOM = DEFAULTS.reply_room

GETJOB = b"GETJOB FROM q\r\n"


@pytest.mark.pure
@pytest.mark.parametrize("request_", [GETJOB, GETJOB * 2])
async def test_new_clients_that_begin_with_getjob_together_cost_as_much_as_they_are(
    request_: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    weighed = 0
    weigh = vars(Session)["weight_of_input"].fget

    def counted(session: Session) -> int:
        nonlocal weighed
        weighed += 1
        return int(weigh(session))

    monkeypatch.setattr(Session, "weight_of_input", property(counted))
    crowd = 10 * ROOM // MUCH
    table = Table(maxclients=crowd)
    sessions = [table.client()[1] for _ in range(crowd)]

    table.batch(*[(each, request_) for each in sessions])
    while table.node._input.ready:
        table.batch()

    assert len(table.node.state.queues[b"q"].waiting) == crowd
    assert weighed <= 4 * crowd


async def test_a_client_waits_in_one_line_also_when_its_load_changes() -> None:
    table, ready = Table(), Ready()
    _, session = table.client()
    ready.add(session, is_lengthy=True)
    session.weight = 0

    ready.add(session, is_lengthy=True)

    assert [len(line) for line in ready.lines] == [0, 1, 0]
    ready.discard(session)
    assert not ready
