"""Job extensions: carried by nodes that announce them, and by no other."""

import attrs
import pytest

from disque_trio.statemachine.base import (
    ACTIVE,
    BURIES,
    CAPABILITIES,
    EXTENDS,
    KEEPS_ALL,
    QUEUED,
    Failure,
    NodeId,
    Status,
)
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import (
    Frame,
    GotJob,
    HaveJobs,
    JobCopy,
    NeedJobs,
    Pong,
    ReplJob,
    YourJobs,
)
from disque_trio.statemachine.records import LoadJob
from tests.rig import CALM, JOB, ME, N2, N3, Rig, copy_of
from tests.statemachine.repairing import SOON, asked, forget
from tests.statemachine.test_priorities import bodies

FROM_LATER = Extensions(priority=3, unknown=((9000, b"of a later version"),))


def extended(copy: JobCopy | None = None) -> JobCopy:
    return attrs.evolve(copy or copy_of(), extensions=FROM_LATER)


def without_extensions(rig: Rig, *names: NodeId) -> None:
    """These nodes are originals, or ours of an earlier version."""
    for name in names:
        rig.node.cluster.nodes[name].capabilities = CAPABILITIES & ~EXTENDS


def copies(rig: Rig, kind: type[ReplJob | YourJobs]) -> list[tuple[NodeId, JobCopy]]:
    return [
        (to, copy)
        for to, message in rig.sent()
        if isinstance(message, kind)
        for copy in message.copies
    ]


# Kept and passed on.


def test_fields_that_are_not_known_here_are_kept_and_passed_on() -> None:
    rig = Rig(peers=2, config=CALM, ours=True)
    rig.message(N2, YourJobs((extended(),)))
    assert rig.node.jobs[JOB].extensions == FROM_LATER
    rig.sent()

    rig.message(N3, NeedJobs(b"q", 1))

    assert [copy.extensions for _, copy in copies(rig, YourJobs)] == [FROM_LATER]


def loads(rig: Rig) -> list[LoadJob]:
    records = [record for out in rig.outboxes for record in out.records]
    return [each for each in records if isinstance(each, LoadJob)]


def test_the_journal_keeps_them() -> None:
    rig = Rig(peers=1, config=attrs.evolve(CALM, appendonly=True))
    rig.hold(extended())
    [record] = loads(rig)
    assert record.copy.extensions == FROM_LATER

    again = Rig(peers=1, ours=True)
    again.machine.load([record], again.now)
    again.machine.loaded(again.now, 10)

    assert again.node.jobs[JOB].extensions == FROM_LATER


def test_show_has_them_behind_everything_else() -> None:
    rig = Rig(peers=1, ours=True)
    rig.hold(extended())

    shown = rig.ask("SHOW", JOB)

    assert isinstance(shown, list)
    assert shown[28:] == [
        b"body", b"body", b"priority", 3, b"extension-9000", b"of a later version",
    ]  # fmt: skip
    assert len(shown) == 34


def test_they_weigh_in_the_memory_account() -> None:
    plain, rig = Rig(peers=1, ours=True), Rig(peers=1, ours=True)
    plain.hold(copy_of())
    rig.hold(extended())

    assert rig.node.memory.held - plain.node.memory.held == FROM_LATER.weight > 180
    rig.ask("DELJOB", JOB)
    assert rig.node.memory.held == 0


# Nodes that do not read them.


def test_copies_go_to_nodes_that_read_them() -> None:
    rig = Rig(peers=3, ours=True)
    without_extensions(rig, N2)

    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3, "PRIORITY", 1)
    for _ in range(5):
        rig.advance(60)

    assert N2 not in {to for to, _ in copies(rig, ReplJob)}


def test_with_too_few_such_nodes_the_client_is_told_why() -> None:
    rig = Rig(peers=2, ours=True)
    without_extensions(rig, N2)

    reply = rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 3, "PRIORITY", 1)

    assert reply == Failure(
        b"NOREPL Not enough reachable nodes for the requested replication level: 1 of the 2 other"
        b" nodes can keep a job with extensions (PRIORITY, GROUP, LIMIT, UNIQUE, BACKOFF)"
    )
    assert not rig.node.jobs
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 3)
    assert [job.replicas for job in rig.node.jobs.values()] == [3]


def test_a_node_without_a_link_is_not_taken_for_one_that_does_not_read_them() -> None:
    rig = Rig(peers=2, ours=True)
    rig.lose_link(N2)
    rig.advance(200)

    reply = rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 3, "PRIORITY", 1)

    assert isinstance(reply, Failure)
    assert b"1 of the 2 other nodes can keep a job with extensions" in reply.text
    assert reply.text.endswith(
        b"; there is no link to 1 of them now: try again, or with a smaller REPLICATE"
    )


def test_repair_gives_copies_to_nodes_that_read_them() -> None:
    rig = Rig(peers=3, ours=True)
    without_extensions(rig, N3)
    job = rig.hold(extended(copy_of(holders=(N2, ME))))
    rig.sent()

    forget(rig, N2)
    rig.advance(SOON)

    assert N3 not in [to for to, _ in asked(rig)]
    assert job.state == ACTIVE


def given(rig: Rig) -> list[list[str]]:
    return [
        [bytes(copy.body).decode() for copy in message.copies]
        for _, message in rig.sent()
        if isinstance(message, YourJobs)
    ]


def test_a_node_that_does_not_read_them_is_given_the_plain_jobs() -> None:
    rig = Rig(peers=2, config=CALM, ours=True)
    without_extensions(rig, N2)
    for body, priority in [("one", 5), ("two", 0), ("three", -5)]:
        rig.add("REPLICATE", 1, "PRIORITY", priority, body=body)
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 10, waits=True))

    assert given(rig) == [["two"]]
    assert [job.body for job in rig.queue().peek(9)] == [b"one", b"three"]


@pytest.mark.parametrize("has_plain", [True, False])
def test_groups_keep_their_turns_when_such_a_node_requests_jobs(*, has_plain: bool) -> None:
    """everything, seed 3625."""
    rig = Rig(peers=2, config=CALM, ours=True)
    without_extensions(rig, N2)
    for group in ("a", "b", "a"):
        rig.add("REPLICATE", 1, "GROUP", group, body=group)
    rig.add("REPLICATE", 1, body="first")
    if has_plain:
        rig.add("REPLICATE", 1, body="second")
    assert bodies(rig, "GETJOB", "FROM", "q") == ["first"]
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 10, waits=False))

    assert given(rig) == ([["second"]] if has_plain else [])
    rig.add("REPLICATE", 1, body="third")
    assert bodies(rig, "QPEEK", "q", 9) == ["a", "b", "third", "a"]
    assert rig.queue().length == 4


def test_such_a_node_gets_a_job_once_and_none_that_has_expired() -> None:
    rig = Rig(peers=2, config=CALM, ours=True)
    without_extensions(rig, N2)
    rig.add("REPLICATE", 1, "GROUP", "a")
    expired = rig.add("REPLICATE", 1, "TTL", 1, "RETRY", 5, body="expired")
    once = rig.add("REPLICATE", 1, "RETRY", 0, body="once")
    rig.now.mono += 1000
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 10, waits=False))

    assert given(rig) == [["once"]]
    assert not {expired.id, once.id} & rig.node.jobs.keys()
    assert rig.queue().length == 1


def test_a_node_that_can_read_none_is_told_that_there_are_none() -> None:
    rig = Rig(peers=2, config=CALM, ours=True)
    without_extensions(rig, N2)
    rig.add("REPLICATE", 1, "PRIORITY", 5)
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 10, waits=True))

    assert rig.sent() == [(N2, HaveJobs(b"q", 0))]


@pytest.mark.pure
def test_plain_jobs_far_behind_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("disque_trio.statemachine.transfer.MOST_SKIPPED", 2)
    rig = Rig(peers=2, config=CALM, ours=True)
    without_extensions(rig, N2)
    jobs = [rig.add("REPLICATE", 1, "PRIORITY", 5) for _ in range(3)]
    rig.add("REPLICATE", 1)
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 10, waits=True))

    assert given(rig) == []
    assert rig.queue().peek(3) == jobs
    assert {job.state for job in rig.node.jobs.values()} == {QUEUED}


# The original's journal.


ORIGINAL = attrs.evolve(CALM, appendonly=True, aof_format="disque")


def test_a_node_with_the_original_s_journal_announces_no_extensions() -> None:
    rig = Rig(peers=1, config=ORIGINAL)
    assert rig.node.config.capabilities == CAPABILITIES & ~KEEPS_ALL
    assert (
        Rig(config=attrs.evolve(CALM, aof_format="disque")).node.config.capabilities == CAPABILITIES
    )


def test_it_refuses_jobs_with_extensions() -> None:
    rig = Rig(peers=1, config=ORIGINAL)

    assert rig.ask("ADDJOB", "q", "body", 0, "PRIORITY", 1, "REPLICATE", 1) == Failure(
        b"ERR aof-format disque has no place for the extensions of a job: use aof-format framed"
    )
    rig.message(N2, ReplJob((extended(),)))
    assert not rig.node.jobs
    assert GotJob(JOB) not in [message for _, message in rig.sent()]


def test_a_job_that_is_given_to_it_all_the_same_is_kept_in_memory() -> None:
    rig = Rig(peers=1, config=ORIGINAL)

    rig.message(N2, YourJobs((extended(),)))

    assert rig.node.jobs[JOB].state == QUEUED
    assert loads(rig) == []


def test_such_a_journal_is_not_begun_while_there_are_jobs_with_extensions() -> None:
    rig = Rig(config=attrs.evolve(CALM, aof_format="disque"))
    job = rig.add("PRIORITY", 1)

    assert rig.ask("CONFIG", "SET", "appendonly", "yes") == Failure(
        b"ERR There are jobs with extensions, such as PRIORITY, for which aof-format disque has no"
        b" place; nothing has been changed"
    )
    assert not rig.node.config.appendonly
    rig.ask("ACKJOB", job.id)
    rig.request("CONFIG", "SET", "appendonly", "yes")
    assert rig.replies() == []  # the driver opens the file


def test_jobs_with_the_same_options_share_their_extensions() -> None:
    rig = Rig()
    one: Job = rig.add("PRIORITY", 1)
    other = rig.add("PRIORITY", 1)

    assert one.extensions is other.extensions
    assert rig.add("PRIORITY", 0).extensions is None


# Earlier versions, as simulations play them.


def earlier(capabilities: int) -> Rig:
    rig = Rig(peers=1, ours=True)
    rig.node.facts = attrs.evolve(rig.node.facts, capabilities=capabilities)
    return rig


def test_a_node_of_an_earlier_version_announces_no_more_than_that_has() -> None:
    assert earlier(EXTENDS).node.capabilities == EXTENDS


@pytest.mark.parametrize("shown", [CAPABILITIES, EXTENDS, 0])
def test_nor_does_it_use_more_with_others(shown: int) -> None:
    rig = earlier(EXTENDS)
    peer = rig.node.cluster.nodes[N2]

    rig.machine.message(peer.link, Frame(N2, peer.port, 0, Pong(), capabilities=shown), rig.now)

    assert peer.capabilities == shown & EXTENDS


@pytest.mark.parametrize("lacks", [EXTENDS, BURIES, CAPABILITIES])
def test_without_extensions_it_takes_no_jobs_with_them(lacks: int) -> None:
    rig = earlier(CAPABILITIES & ~lacks)

    assert isinstance(rig.ask("ADDJOB", "q", "b", 0, "REPLICATE", 1, "PRIORITY", 1), Failure)
    assert isinstance(rig.ask("ADDJOB", "q", "b", 0, "REPLICATE", 1), Status)
