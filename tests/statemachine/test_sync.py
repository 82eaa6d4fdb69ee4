"""ADDJOB REPLICATE n SYNC m: answered after m copies, the rest follow and are repaired if lost."""

import pytest

from disque_trio.statemachine import copies, repair, replication
from disque_trio.statemachine.base import (
    FAIL,
    LEAVING,
    PFAIL,
    QUEUED,
    WAIT_REPL,
    Failure,
    NodeId,
    Status,
)
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import DelJob, GotJob
from disque_trio.statemachine.nodetable import mark, unmark
from tests.rig import ME, N2, N3, N4, Rig
from tests.statemachine.commands.refused import Refused
from tests.statemachine.repairing import asked
from tests.statemachine.replicating import waiting_job

NOREPL = Refused(replication.OUT_OF_REACH)


def fail(rig: Rig, *names: NodeId) -> None:
    """The node learns that these have failed."""
    for name in names:
        mark(rig.node, rig.node.cluster.nodes[name], FAIL)


def suspect(rig: Rig, name: NodeId) -> None:
    """A node has not answered this node's ping for longer than the node timeout."""
    peer = rig.node.cluster.nodes[name]
    peer.ping_sent = rig.now.mono - rig.node.config.cluster_node_timeout - 1
    mark(rig.node, peer, PFAIL)


def added(rig: Rig, *options: bytes | str | int) -> Job:
    """A job that has been answered after one confirmation of another node."""
    job = waiting_job(rig, *options)
    rig.message(job.holders[1], GotJob(job.id))
    assert rig.replies() == [Status(job.id)]
    rig.sent()
    return job


# Copies that cannot come.


def test_an_add_whose_copies_cannot_come_any_more_is_refused_when_that_is_known() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 3)
    rig.message(N2, GotJob(job.id))
    rig.sent()

    fail(rig, N3)
    rig.advance(replication.RESEND_EVERY)

    assert rig.reply() == NOREPL
    assert (N2, DelJob(job.id)) in rig.sent()
    assert job.id not in rig.node.jobs


def test_it_is_not_refused_while_another_node_can_take_the_copy() -> None:
    rig = Rig(peers=3)
    job = waiting_job(rig, "REPLICATE", 3)
    out = job.holders[1]

    fail(rig, out)
    rig.advance(replication.RESEND_EVERY)

    assert rig.replies() == []
    for holder in job.holders:
        if holder not in (ME, out):
            rig.message(holder, GotJob(job.id))
    assert rig.reply() == Status(job.id)


def test_a_copy_confirmed_before_its_holder_failed_counts() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 3)
    rig.message(N2, GotJob(job.id))

    fail(rig, N2)
    rig.advance(replication.RESEND_EVERY)
    rig.message(N3, GotJob(job.id))

    assert rig.reply() == Status(job.id)


def test_it_is_not_refused_because_a_node_is_only_suspected() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 3)
    rig.message(N2, GotJob(job.id))

    suspect(rig, N3)
    rig.advance(replication.RESEND_EVERY)
    assert rig.replies() == []
    rig.message(N3, GotJob(job.id))

    assert rig.reply() == Status(job.id)


def test_nor_before_a_node_that_has_failed_could_have_been_started_again() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 3)
    rig.message(N2, GotJob(job.id))
    rig.node.cluster.nodes[N3].ping_sent = rig.now.mono - 1
    fail(rig, N3)

    rig.advance(copies.RESTART - 2 * replication.RESEND_EVERY)
    assert rig.replies() == []
    unmark(rig.node, rig.node.cluster.nodes[N3], FAIL)
    rig.message(N3, GotJob(job.id))

    assert rig.reply() == Status(job.id)


def test_an_add_that_begins_while_a_node_may_be_started_again_waits_for_it() -> None:
    rig = Rig(peers=2)
    rig.node.cluster.nodes[N3].ping_sent = rig.now.mono - 1
    fail(rig, N3)

    job = waiting_job(rig, "REPLICATE", 3)
    rig.message(N2, GotJob(job.id))
    unmark(rig.node, rig.node.cluster.nodes[N3], FAIL)
    rig.advance(2 * replication.RESEND_EVERY)
    assert N3 in job.holders
    rig.message(N3, GotJob(job.id))

    assert rig.reply() == Status(job.id)


@pytest.mark.parametrize("also", [LEAVING, 0])
def test_it_is_refused_at_once_when_the_node_leaves_or_has_been_silent_for_longer(
    also: int,
) -> None:
    rig = Rig(peers=2)
    silent = 1 if also else copies.RESTART
    peer = rig.node.cluster.nodes[N3]
    peer.ping_sent = rig.now.mono - silent
    mark(rig.node, peer, FAIL | also)

    assert rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 3) == Refused(
        replication.NOT_ENOUGH_NODES
    )


def test_but_when_it_has_not_been() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 3)
    rig.message(N2, GotJob(job.id))
    rig.node.cluster.nodes[N3].ping_sent = rig.now.mono - 1
    fail(rig, N3)

    rig.advance(copies.RESTART + replication.RESEND_EVERY)

    assert rig.reply() == NOREPL


def test_nor_by_a_leaving_node_which_keeps_no_copy() -> None:
    rig = Rig(peers=2)
    rig.ask("CLUSTER", "LEAVING", "yes")
    job = waiting_job(rig, "REPLICATE", 2)
    rig.message(N2, GotJob(job.id))

    suspect(rig, N3)
    rig.advance(replication.RESEND_EVERY)
    assert rig.replies() == []
    rig.message(N3, GotJob(job.id))

    assert rig.reply() == Status(job.id)


def test_it_is_refused_when_a_suspected_node_stays_silent_without_a_majority() -> None:
    rig = Rig(peers=1)
    waiting_job(rig, "REPLICATE", 2)

    suspect(rig, N2)
    rig.advance(2 * rig.node.config.cluster_node_timeout + replication.RESEND_EVERY)

    assert rig.reply() == NOREPL


def test_a_node_that_leaves_takes_no_copy_any_more() -> None:
    rig = Rig(peers=2)
    waiting_job(rig, "REPLICATE", 3)

    mark(rig.node, rig.node.cluster.nodes[N3], LEAVING)
    rig.advance(replication.RESEND_EVERY)

    assert rig.reply() == NOREPL


def test_all_adds_of_a_pipeline_are_refused_in_their_order() -> None:
    rig = Rig(peers=1)
    for _ in range(3):
        assert rig.offer("ADDJOB", "q", "body", 0, "REPLICATE", 2)

    fail(rig, N2)
    rig.advance(replication.RESEND_EVERY)

    assert rig.replies() == [NOREPL] * 3


# SYNC.


def test_the_client_is_answered_after_so_many_confirmations_and_the_job_is_queued() -> None:
    rig = Rig(peers=2)
    job = waiting_job(rig, "REPLICATE", 3, "SYNC", 2)
    assert job.holders == (ME, N2, N3)

    rig.message(N3, GotJob(job.id))

    assert rig.reply() == Status(job.id)
    assert job.state == QUEUED
    assert job.replicas == 3
    assert job.confirmed == (ME, N3)


def test_sync_1_is_answered_at_once_and_the_copies_are_sent() -> None:
    rig = Rig(peers=2)

    reply = rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 3, "SYNC", 1)

    [job] = rig.node.jobs.values()
    assert reply == Status(job.id)
    assert sorted(to for to, _ in rig.sent()) == [N2, N3]
    rig.message(N2, GotJob(job.id))
    rig.message(N3, GotJob(job.id))
    assert job.confirmed is None


def test_a_late_confirmation_completes_the_copies_and_nothing_more_is_sent() -> None:
    rig = Rig(peers=3)
    job = added(rig, "REPLICATE", 3, "SYNC", 2)

    rig.message(job.holders[2], GotJob(job.id))
    rig.advance(replication.TRAILS_FOR + repair.RUN_EVERY)

    assert asked(rig) == []
    assert not rig.node.repair.trailing


def test_a_copy_that_is_not_confirmed_goes_to_another_node() -> None:
    rig = Rig(peers=3)
    job = added(rig, "REPLICATE", 3, "SYNC", 2)
    [other] = {N2, N3, N4}.difference(job.holders)

    rig.advance(replication.TRAILS_FOR + repair.RUN_EVERY)

    assert [to for to, _ in asked(rig)] == [other]
    rig.message(other, GotJob(job.id))
    assert other in (job.confirmed or job.holders)
    assert not rig.node.repair.awaited


def test_it_goes_to_another_node_though_no_pass_over_the_jobs_is_due() -> None:
    rig = Rig(peers=3, config=Config(cluster_node_timeout=1 << 30))
    rig.advance(repair.TAKE_OVER)  # the pass of the start is over
    job = added(rig, "REPLICATE", 3, "SYNC", 2)
    [other] = {N2, N3, N4}.difference(job.holders)

    rig.advance(replication.TRAILS_FOR - 1)
    assert asked(rig) == []
    rig.advance(1 + repair.RUN_EVERY)

    assert [to for to, _ in asked(rig)] == [other]
    assert list(rig.node.repair.silent) == [job.holders[2]]


def test_without_another_node_it_is_repaired_when_one_comes_back() -> None:
    rig = Rig(peers=2, config=Config(cluster_node_timeout=1 << 30))
    fail(rig, N3)
    job = waiting_job(rig, "REPLICATE", 3, "SYNC", 2)
    rig.message(N2, GotJob(job.id))
    assert rig.reply() == Status(job.id)
    rig.advance(replication.TRAILS_FOR + repair.RUN_EVERY)
    rig.sent()

    unmark(rig.node, rig.node.cluster.nodes[N3], FAIL)
    rig.advance(repair.TAKE_OVER * 3)

    assert N3 in [to for to, _ in asked(rig)]


def test_a_job_that_has_ended_is_not_followed_up() -> None:
    rig = Rig(peers=2)
    job = added(rig, "REPLICATE", 3, "SYNC", 2)
    rig.ask("ACKJOB", job.id)
    rig.sent()

    rig.advance(replication.TRAILS_FOR + repair.RUN_EVERY)

    assert asked(rig) == []
    assert not rig.node.repair.trailing


def test_fewer_nodes_than_sync_are_an_error_and_fewer_than_replicate_are_none() -> None:
    rig = Rig(peers=2)
    fail(rig, N2)
    assert waiting_job(rig, "REPLICATE", 3, "SYNC", 2).state == WAIT_REPL

    assert rig.offer("ADDJOB", "q", "body", 0, "REPLICATE", 4, "SYNC", 3)
    fail(rig, N3)
    rig.advance(replication.RESEND_EVERY)

    assert rig.replies() == [NOREPL, Refused(replication.NOT_ENOUGH_NODES)]


def test_an_add_with_sync_is_refused_when_even_these_copies_cannot_come() -> None:
    rig = Rig(peers=2)
    waiting_job(rig, "REPLICATE", 3, "SYNC", 2)

    fail(rig, N2)
    rig.advance(replication.RESEND_EVERY)
    assert rig.replies() == []
    fail(rig, N3)
    rig.advance(replication.RESEND_EVERY)

    assert rig.reply() == NOREPL


def test_a_job_with_a_key_is_answered_after_sync_too() -> None:
    rig = Rig()
    assert isinstance(
        rig.ask("ADDJOB", "q", "body", 0, "UNIQUE", "k", "REPLICATE", 1, "SYNC", 1), Status
    )


def test_a_leaving_node_keeps_no_copy_and_waits_for_all() -> None:
    rig = Rig(peers=2)
    rig.ask("CLUSTER", "LEAVING", "yes")
    job = waiting_job(rig, "REPLICATE", 2, "SYNC", 1)

    rig.message(N2, GotJob(job.id))
    assert rig.replies() == []
    rig.message(N3, GotJob(job.id))

    assert rig.reply() == Status(job.id)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("REPLICATE", 2, "SYNC", 3), "SYNC 3 is more than REPLICATE 2"),
        (("SYNC", 2, "ASYNC"), "ASYNC waits for no copies, SYNC does: give one"),
        (("SYNC", 0), "ERR SYNC must be a whole number from 1 to 65535: '0' is less than 1"),
        (("SYNC", 2, "SYNC", 2), "SYNC is given twice"),
        (("SYNC",), "SYNC has no value behind it"),
    ],
)
def test_what_cannot_be_is_refused(options: tuple[str | int, ...], error: str) -> None:
    reply = Rig(peers=2).ask("ADDJOB", "q", "body", 0, *options)

    assert isinstance(reply, Failure)
    assert error.encode() in reply.text


# Defaults.


def test_the_defaults_of_both_are_settings_of_the_node() -> None:
    rig = Rig(peers=3, config=Config(default_replicate=4, default_sync=2))
    job = waiting_job(rig)

    assert job.replicas == 4
    rig.message(job.holders[1], GotJob(job.id))
    assert rig.reply() == Status(job.id)


def test_options_go_before_the_defaults() -> None:
    rig = Rig(peers=2, config=Config(default_sync=2))
    job = waiting_job(rig, "REPLICATE", 3, "SYNC", 3)

    rig.message(N2, GotJob(job.id))
    assert rig.replies() == []


def test_sync_without_replicate_asks_for_as_many_copies_at_least() -> None:
    rig = Rig(peers=3)
    job = waiting_job(rig, "SYNC", 4)

    assert job.replicas == 4


def test_the_default_of_sync_is_at_most_the_number_of_copies() -> None:
    rig = Rig(config=Config(default_sync=2))

    assert isinstance(rig.ask("ADDJOB", "q", "body", 0), Status)
