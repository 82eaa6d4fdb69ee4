"""A job that follows another one with its key, and whose node starts again with its journal."""

from disque_trio.statemachine import key_ordering
from disque_trio.statemachine.base import QUEUED, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.records import LoadJob
from tests.rig import Rig
from tests.statemachine.keying import ask, claims, keyed_rig, say_all


def restarted() -> tuple[Rig, bytes]:
    """A node of ours that is loading a job that follows another one, and the id of that job."""
    rig = keyed_rig(config=Config(appendonly=True))
    ask(rig)
    say_all(rig)
    rig.request("GETJOB", "FROM", "q")
    client = ask(rig, "IFEXISTS", "again")
    say_all(rig)
    reply = rig.reply(client)
    assert isinstance(reply, Status)
    records = [record for box in rig.outboxes for record in box.records]
    copies = [each for each in records if isinstance(each, LoadJob) and each.copy.id == reply.text]
    new = keyed_rig(config=Config(appendonly=True))
    new.machine.load(copies[-1:], new.now)
    return new, reply.text


def test_after_a_start_the_node_of_the_adder_finds_out_when_its_job_may_come() -> None:
    rig, follower = restarted()

    assert rig.machine.loaded(rig.now)
    rig.advance(0)
    say_all(rig)

    assert rig.node.jobs[follower].state == QUEUED


def test_but_not_before_all_jobs_have_been_loaded() -> None:
    rig, follower = restarted()
    assert not rig.machine.loaded(rig.now, 1)

    rig.advance(500)

    assert not claims(rig)
    assert rig.machine.loaded(rig.now)
    rig.advance(key_ordering.LOOK_EVERY)
    say_all(rig)
    assert rig.node.jobs[follower].state == QUEUED
