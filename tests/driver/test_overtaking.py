"""What leaves before its batch: output that depends on no record, in each client's order."""

from collections.abc import Sequence

from disque_trio.driver.overtaking import overtaking
from disque_trio.statemachine.base import Now
from disque_trio.statemachine.chores import ReadVitals, RewriteJournal
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.membership import meet
from disque_trio.statemachine.messages import GossipMessage, ReplJob
from disque_trio.statemachine.outbox import Outbox
from tests.rig import Rig

PING = [b"PING"]
ADD = [b"ADDJOB", b"q", b"body", b"0"]
FLUSH = [b"DEBUG", b"FLUSHALL"]
SKIP = [b"CLIENT", b"REPLY", b"SKIP"]


def asked(rig: Rig, *requests: Sequence[bytes], client: Client | None = None) -> Outbox:
    """What a batch with these requests leads to."""
    for request in requests:
        rig.machine.request(client or rig.client, list(request), rig.now)
    return rig.machine.take()


def test_a_look_leaves_ahead_and_a_change_stays() -> None:
    rig = Rig()
    looker = rig.connect()
    asked(rig, ADD)
    rig.machine.request(rig.client, ADD, rig.now)
    out = asked(rig, PING, [b"QLEN", b"q"], client=looker)

    early = overtaking(out, 0, 1)

    assert early is not None
    assert [client for client, _ in early.replies] == [looker, looker]
    assert [client for client, _ in out.replies] == [rig.client]


def test_nothing_is_left_of_a_batch_of_looks() -> None:
    rig = Rig()
    out = asked(rig, PING)

    assert overtaking(out, 0, 1)
    assert not out


def test_a_look_in_one_batch_with_a_change_of_the_same_client_stays() -> None:
    for change in (ADD, FLUSH):
        rig = Rig()
        out = asked(rig, change, PING)

        assert not overtaking(out, 0, 1)
        assert len(out.replies) == 2


def test_so_it_does_when_they_came_in_a_pipeline() -> None:
    rig = Rig()
    rig.machine.requests(rig.client, [ADD, PING], rig.now, lambda: 0)
    out = rig.machine.take()

    assert not overtaking(out, 0, 1)
    assert len(out.replies) == 2


def test_a_look_waits_for_the_change_before_it_though_that_was_not_to_be_answered() -> None:
    rig = Rig()
    out = asked(rig, SKIP, ADD)
    assert not out.replies
    assert not overtaking(out, 6, 7)

    assert not overtaking(asked(rig, PING), 6, 7)
    assert overtaking(asked(rig, PING), 7, 7)


def test_a_look_waits_for_an_answer_that_has_come_late() -> None:
    rig = Rig()
    asked(rig, [b"GETJOB", b"FROM", b"q"])
    out = asked(rig, ADD, client=rig.connect())
    overtaking(out, 2, 3)
    assert len(out.replies) == 2

    assert not overtaking(asked(rig, PING), 2, 3)
    assert overtaking(asked(rig, PING), 3, 3)


def test_the_heartbeat_leaves_ahead_and_messages_about_jobs_stay() -> None:
    rig = Rig(peers=2)
    meet(rig.node, "127.0.0.9", 7711)
    rig.now = Now(rig.now.mono + 2000, rig.now.wall + 2000)
    rig.machine.tick(rig.now)
    out = asked(rig, [*ADD, b"REPLICATE", b"3"])

    early = overtaking(out, 0, 1)

    assert early is not None
    assert early.dials
    assert early.messages
    assert all(isinstance(message, GossipMessage) for _, message in early.messages)
    assert [type(message) for _, message in out.messages] == [ReplJob]


def test_a_chore_that_only_looks_is_done_at_once() -> None:
    rig = Rig()
    rig.machine.request(rig.connect(), [b"INFO"], rig.now)
    out = asked(rig, [b"BGREWRITEAOF"])

    early = overtaking(out, 0, 1)

    assert early is not None
    assert [chore for _, chore in early.chores] == [ReadVitals()]
    assert [chore for _, chore in out.chores] == [RewriteJournal()]


def test_clients_that_may_go_on_do_so_at_once() -> None:
    rig = Rig()
    asked(rig, [b"INFO", b"nosuch"])
    asked(rig, [b"CLIENT", b"PAUSE", b"100"])
    assert not rig.machine.accepts(rig.client)
    rig.now = Now(rig.now.mono + 200, rig.now.wall + 200)
    rig.machine.tick(rig.now)
    out = rig.machine.take()

    early = overtaking(out, 0, 1)

    assert early is not None
    assert early.resumed == [rig.client]
    assert not out.resumed
