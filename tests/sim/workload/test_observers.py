from disque_trio.sim.scenarios.plan import Observer, Plan
from disque_trio.sim.workload.actions import PATIENCE, Disconnect, SendRequest
from disque_trio.sim.workload.observers import Watcher, observers
from disque_trio.statemachine.base import Reply, Status

JOB = b"D-11111111-222222222222222222222222-05a1"


def watcher(nodes: int = 1) -> Watcher:
    observer = Observer(name="o1", every=(1_000, 2_000), queues=("q",))
    (found,) = observers(Plan(scenario="s", seed=1, nodes=nodes, observers=(observer,)))
    return found


def asked(agent: Watcher) -> SendRequest:
    """What it asks next."""
    agent.wake(agent.deadline())
    (action,), agent.actions = agent.actions, []
    assert isinstance(action, SendRequest)
    return action


def answer(agent: Watcher, ask: SendRequest, **replies: Reply) -> None:
    last_page: list[Reply] = [b"0", []]
    reply = replies.get(ask.words[0].decode(), last_page if b"SCAN" in ask.words[0] else None)
    agent.answered(agent.deadline(), ask.connection, reply)


def test_a_node_is_first_asked_for_its_name() -> None:
    agent = watcher()

    first = asked(agent)
    answer(agent, first)

    assert first.words == [b"HELLO"]
    assert asked(agent).words != [b"HELLO"]


def test_every_command_comes_up_and_every_node_is_asked() -> None:
    agent = watcher(nodes=3)
    seen: dict[tuple[bytes, int], None] = {}

    for _ in range(400):
        ask = asked(agent)
        seen[ask.words[0], ask.node] = None
        answer(agent, ask, QPEEK=[[b"q", JOB, b"body"]], JSCAN=[b"0", [Status(JOB)]])

    commands = (b"QLEN", b"QPEEK", b"QSTAT", b"SHOW", b"QSCAN", b"JSCAN", b"INFO", b"HELLO")
    assert seen.keys() == {(command, node) for command in commands for node in (1, 2, 3)}


def test_it_asks_for_jobs_of_which_it_was_told() -> None:
    agent = watcher()

    for _ in range(100):
        ask = asked(agent)
        answer(agent, ask, QPEEK=[[b"q", JOB, b"body"]])
        if ask.words[0] == b"SHOW":
            assert ask.words == [b"SHOW", JOB]
            return
    raise AssertionError


def test_a_scan_goes_on_where_it_was() -> None:
    agent = watcher()
    cursors = []

    for _ in range(200):
        ask = asked(agent)
        answer(agent, ask, JSCAN=[b"77", []])
        if ask.words[0] == b"JSCAN" and ask.words[1] != b"BUSYLOOP":
            cursors.append(ask.words[1])

    assert set(cursors) == {b"0", b"77"}


def test_it_gives_up_on_a_node_that_does_not_answer() -> None:
    agent = watcher()
    ask = asked(agent)

    while agent.deadline() <= PATIENCE:
        agent.wake(agent.deadline())
        assert agent.actions == []
    agent.wake(agent.deadline())
    hung_up, agent.actions = agent.actions, []

    assert hung_up == [Disconnect(ask.connection)]
    assert asked(agent).words == [b"HELLO"]


def test_a_lost_connection_is_replaced() -> None:
    agent = watcher()
    first = asked(agent)
    agent.lost(agent.deadline(), first.connection)

    assert asked(agent).connection != first.connection
