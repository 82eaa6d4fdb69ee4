import attrs
import pytest

from disque_trio.statemachine import lifecycle
from disque_trio.statemachine.base import ACKED, DEAD, STATE_NAMES
from disque_trio.statemachine.extensions import DeadState
from disque_trio.statemachine.job_states import MEANINGS, TRANSITIONS
from disque_trio.statemachine.messages import GotJob, JobState, SetAck
from disque_trio.statemachine.records import LoadJob
from tests.rig import JOB, N2, ONCE, Rig, copy_of
from tests.statemachine.burying import limited, with_dead
from tests.statemachine.storm import Storm
from tests.statemachine.watching_states import WAYS, Way


def test_each_state_has_its_meaning_and_each_way_is_listed_once() -> None:
    assert sorted(MEANINGS) == list(range(len(STATE_NAMES)))
    assert len(WAYS) == len(TRANSITIONS)


@pytest.mark.pure
def test_a_change_that_is_not_listed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    job = rig.add()
    monkeypatch.setitem(vars(lifecycle), "ACTIVE", DEAD)

    with pytest.raises(AssertionError, match=r"2 to 4 by lifecycle\.dequeue"):
        rig.ask("DEQUEUE", job.id)


@pytest.mark.pure
def test_each_way_is_gone(ways: set[Way]) -> None:
    storm = Storm()
    for number in range(2000):
        storm.step(number)
    take_in_copies()
    lose_copies()
    bury_and_redrive()

    assert WAYS - ways == set()


def take_in_copies() -> None:
    """A copy comes; a journal has jobs that are dead and acknowledged."""
    Rig(peers=1).hold(copy_of())
    rig = Rig()
    dead = limited(copy_of(), dead=DeadState(1, True, b"why"))
    rig.machine.load([LoadJob(dead), LoadJob(attrs.evolve(copy_of(ONCE), state=ACKED))], rig.now)
    assert rig.machine.loaded(rig.now)


def lose_copies() -> None:
    """ADDJOBs that wait for copies: too few come; the job ends, or dies, elsewhere before."""
    for message in (None, SetAck(JOB, 0), JobState(JOB, 1000, DeadState(1, True, b"why"))):
        rig = Rig(peers=1, ours=True)
        rig.request("ADDJOB", "q", "body", 500, "REPLICATE", 2)
        [job] = rig.node.jobs.values()
        if message is not None:
            rig.message(N2, attrs.evolve(message, id=job.id))
            rig.message(N2, GotJob(job.id))
        rig.advance(1000)


def bury_and_redrive() -> None:
    """Dead jobs that are redriven, acknowledged, and forgotten."""
    rig, job = with_dead()
    rig.ask("REDRIVE", job.id)
    for last in ("ACKJOB", "DELJOB"):
        rig, job = with_dead()
        rig.ask(last, job.id)
    rig = Rig(peers=1, ours=True)
    rig.hold(limited(copy_of(), dead=DeadState(1, True, b"why")))
    rig.ask("ACKJOB", JOB)
