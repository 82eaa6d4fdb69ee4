from disque_trio.statemachine.base import Lengthy
from disque_trio.statemachine.chores import Connection, Vitals
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.lengthy import whole
from tests.rig import Rig
from tests.statemachine.commands.chores import done
from tests.statemachine.commands.test_clients import listed


def test_a_list_of_many_clients_is_made_some_at_a_time_without_those_that_have_gone() -> None:
    rig = Rig()
    short = listed(rig)
    clients = [rig.connect() for _ in range(2 * DEFAULTS.peeked_at_once)]
    looked: list[int] = []

    def look(id: int) -> Connection:
        looked.append(id)
        return Connection()

    rig.request("CLIENT", "LIST")
    done(rig, Vitals(connection_of=look))
    reply = rig.reply()
    assert isinstance(reply, Lengthy)
    assert looked == []

    assert next(reply.parts) == []
    assert len(looked) == DEFAULTS.peeked_at_once
    assert reply.left()[1] > 0
    rig.disconnect(clients[-1])
    text = whole(reply)

    assert isinstance(text, bytes)
    lines = text.decode().splitlines()
    assert [int(line.split()[0][3:]) for line in lines] == list(
        range(1, 2 * DEFAULTS.peeked_at_once + 1)
    )
    assert lines[0] == short[0]
    assert reply.left()[1] == 0
