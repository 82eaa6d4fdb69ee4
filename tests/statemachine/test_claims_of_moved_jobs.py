"""UNIQUE at a node that the job with the key has left a moment ago."""

from disque_trio.statemachine.base import Status
from disque_trio.statemachine.keyasking import ASK_EVERY
from disque_trio.statemachine.keyindex import TRAIL
from disque_trio.statemachine.messages import NeedJobs
from tests.rig import N2, Rig
from tests.statemachine.keying import KEY, ask, claims, held, keyed_rig, say, say_all, wanted

TICK = 10


def test_a_claim_at_the_node_that_the_job_has_left_asks_where_it_is() -> None:
    rig = keyed_rig()
    first = ask(rig, "RETRY", 0)
    job = wanted(rig, first)
    say_all(rig)
    rig.message(N2, NeedJobs(b"q", 1, waits=True))
    assert job.id not in rig.node.jobs
    client = ask(rig)

    rig.advance(ASK_EVERY + TICK)
    for _ in range(2):
        for to, claim in claims(rig):
            say(rig, to, claim, *([held(job.id, job.ctime)] if to == N2 else []))

    assert rig.reply(client) == Status(job.id)


def test_the_key_of_a_deleted_job_is_free_a_moment_later() -> None:
    rig = Rig()
    rig.ask("DELJOB", rig.add("UNIQUE", KEY).id)
    client = ask(rig)
    assert rig.replies(client) == []

    rig.advance(TRAIL + ASK_EVERY + TICK)

    assert isinstance(rig.reply(client), Status)
