from disque_trio.sim.scenarios.plan import Administrator, Plan
from disque_trio.sim.workload.actions import PATIENCE, Disconnect, SendRequest
from disque_trio.sim.workload.administrators import Commander, administrators
from disque_trio.sim.workload.visits import NEVER
from disque_trio.statemachine.base import NULL_ARRAY

JOB = b"D-11111111-222222222222222222222222-05a1"


def commander(*orders: str) -> Commander:
    mix = tuple((order, 1.0) for order in orders)
    plan = Administrator(name="a1", every=(1_000, 2_000), queues=("q",), mix=mix)
    (found,) = administrators(Plan(scenario="s", seed=1, nodes=3, administrators=(plan,)))
    return found


def ordered(agent: Commander) -> SendRequest:
    """What it orders next."""
    agent.wake(agent.deadline())
    action = agent.actions[-1]
    agent.actions.clear()
    assert isinstance(action, SendRequest)
    return action


def test_orders_go_to_every_node_on_a_connection_for_each() -> None:
    agent = commander("purge", "unblock")
    seen: dict[bytes, None] = {}
    nodes: dict[int, None] = {}

    for number in range(1, 100):
        ask = ordered(agent)
        assert ask.connection == number
        seen |= dict.fromkeys(ask.words)
        nodes[ask.node] = None
        agent.answered(agent.deadline(), ask.connection, 1)
        assert agent.actions == [Disconnect(ask.connection, "quit")]

    assert {b"PURGE", b"BCAST", b"q", b"UNBLOCK", b"40"} <= seen.keys()
    assert sorted(nodes) == [1, 2, 3]


def test_it_waits_for_a_job_that_it_has_seen() -> None:
    agent = commander("wait")
    ask = ordered(agent)
    assert ask.words == [b"QPEEK", b"q", b"-3"]

    agent.answered(agent.deadline(), ask.connection, [[b"q", JOB, b"body"]])

    [action] = agent.actions
    assert isinstance(action, SendRequest)
    assert (action.connection, action.words[:3]) == (ask.connection, [b"WAITJOB", JOB, b"TIMEOUT"])


def test_without_a_job_there_is_nothing_to_wait_for() -> None:
    agent = commander("wait")

    agent.answered(0, ordered(agent).connection, [])

    assert agent.actions == [Disconnect(1, "quit")]


def test_it_gives_up_on_a_reply_and_goes_on() -> None:
    agent = commander("purge")
    first = ordered(agent)
    given_up = agent.deadline()
    while agent.deadline() < PATIENCE:
        agent.wake(agent.deadline())
        assert not agent.actions

    agent.wake(PATIENCE + 2_000)

    assert given_up <= PATIENCE + 2_000
    assert agent.actions[0] == Disconnect(first.connection)
    agent.answered(NEVER, first.connection, NULL_ARRAY)
    agent.lost(NEVER, first.connection)


def test_a_lost_connection_is_replaced_and_after_the_chaos_none_is_opened() -> None:
    agent = commander("purge")

    agent.lost(0, ordered(agent).connection)
    assert ordered(agent).connection == 2
    agent.lost(0, 2)
    agent.settle()

    assert (agent.deadline(), agent.is_idle()) == (NEVER, True)


def test_it_cancels_a_job_that_it_has_seen() -> None:
    agent = commander("cancel")
    ask = ordered(agent)

    agent.answered(agent.deadline(), ask.connection, [[b"q", JOB, b"body"]])

    [action] = agent.actions
    assert isinstance(action, SendRequest)
    assert (action.connection, action.words) == (ask.connection, [b"ACKJOB", JOB])
