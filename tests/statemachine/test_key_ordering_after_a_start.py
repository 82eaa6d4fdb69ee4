"""A job that follows another one with its key, and whose node starts again with its journal."""

import attrs
import pytest

from disque_trio.statemachine import key_index, key_ordering
from disque_trio.statemachine.base import ACTIVE, BCAST_QUEUED, QUEUED, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.key_facts import DONE_KEPT, ENDED, HELD_BACK, WITH_WORKER
from disque_trio.statemachine.key_search import NO_JOB
from disque_trio.statemachine.messages import KeyClaim
from disque_trio.statemachine.records import LoadJob
from tests.rig import N2, Rig
from tests.statemachine.keying import answers, ask, claims, held, keyed_rig, say_all


def restarted(*options: str | int, flags: int = 0) -> tuple[Rig, bytes]:
    """A node of ours that is loading a job that follows another one, and the id of that job."""
    rig = keyed_rig(config=Config(appendonly=True))
    ask(rig)
    say_all(rig)
    rig.request("GETJOB", "FROM", "q")
    client = ask(rig, "IFEXISTS", "again", *options)
    say_all(rig)
    reply = rig.reply(client)
    assert isinstance(reply, Status)
    records = [record for box in rig.outboxes for record in box.records]
    copies = [each for each in records if isinstance(each, LoadJob) and each.copy.id == reply.text]
    new = keyed_rig(config=Config(appendonly=True))
    copy = copies[-1].copy
    copy = attrs.evolve(copy, flags=copy.flags | flags)
    new.machine.load([LoadJob(copy)], new.now)
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


@pytest.mark.parametrize(
    ("word", "marks", "state"), [(0, 0, ACTIVE), (ENDED, 0, ACTIVE), (0, HELD_BACK, QUEUED)]
)
def test_what_another_holder_has_let_go_before_comes_after_its_period(
    word: int, marks: int, state: int
) -> None:
    """everything, seed 889: a worker had it, and it was delivered at once a second time."""
    rig, follower = restarted()
    assert rig.machine.loaded(rig.now)
    rig.advance(0)
    known = attrs.evolve(held(follower, state=WITH_WORKER), marks=marks)
    say_all(rig, attrs.evolve(known, word=word, state=DONE_KEPT) if word else known)

    job = rig.node.jobs[follower]
    assert not key_index.is_held_back(job)
    assert job.state == state
    rig.advance(job.retry + 1000)
    assert job.state == QUEUED


@pytest.mark.parametrize("is_let_go", [False, True])
@pytest.mark.parametrize(("flags", "due"), [(0, 20_000), (BCAST_QUEUED, 80_000)])
def test_a_delay_goes_on_here_whether_or_not_another_node_queues_the_job_first(
    flags: int, due: int, *, is_let_go: bool
) -> None:
    """everything, seed 3758: a copy was queued a period after the start."""
    rig, follower = restarted("DELAY", 20, "RETRY", 60, flags=flags)
    assert rig.machine.loaded(rig.now)
    rig.advance(0)
    say_all(rig, *[held(follower)] * is_let_go)

    job = rig.node.jobs[follower]
    rig.advance(due - 500)
    assert job.state == ACTIVE
    rig.advance(1000)
    say_all(rig)
    assert job.state == QUEUED


@pytest.mark.parametrize("is_let_go", [False, True])
def test_a_holder_that_has_let_it_go_says_so(*, is_let_go: bool) -> None:
    rig, follower = restarted()
    assert rig.machine.loaded(rig.now)
    if is_let_go:
        key_index.let_go(rig.node, rig.node.jobs[follower])
    claim = KeyClaim(1, 1, follower, 0, NO_JOB, b"q", b"k")
    rig.message(N2, claim)

    [(_, facts)] = answers(rig)
    assert [each.id for each in facts if not each.marks & HELD_BACK] == [follower] * is_let_go
