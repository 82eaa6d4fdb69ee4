"""Requests that are refused because of trouble of the node, a queue or the cluster."""

import pytest

from disque_trio.statemachine.base import Failure
from disque_trio.statemachine.refusals import REFUSALS
from disque_trio.statemachine.tally import LULL
from tests.rig import WALL, Rig
from tests.statemachine.commands.informed import fields_of
from tests.statemachine.squeezing import squeezed


def test_refusals_are_counted_by_cause_with_the_time_of_the_last() -> None:
    rig = Rig()
    rig.ask("PAUSE", "closed", "in")
    rig.ask("ADDJOB", "q", "body", 0)
    asked = {
        "NOREPL": ("ADDJOB", "q", "body", 0, "REPLICATE", 2),
        "MAXLEN": ("ADDJOB", "q", "body", 0, "MAXLEN", 1),
        "PAUSED": ("ADDJOB", "closed", "body", 0),
    }
    for words in asked.values():
        assert isinstance(rig.ask(*words), Failure)
    rig.advance(90_000)
    assert isinstance(rig.ask(*asked["PAUSED"]), Failure)
    assert isinstance(rig.ask("ADDJOB", "q", "body", 0, "RETRY", "soon"), Failure)

    said = fields_of(rig, "stats")

    assert said["refused_requests"] == "4"
    assert said["refused_requests_by_cause"] == "NOREPL=1,MAXLEN=1,PAUSED=2"
    first = WALL // 1000
    assert said["last_refused_by_cause"] == f"NOREPL={first},MAXLEN={first},PAUSED={first + 90}"
    assert said["refused_since_by_cause"] == f"NOREPL={first},MAXLEN={first},PAUSED={first}"
    assert said["refused_lately_by_cause"] == "NOREPL=1,MAXLEN=1,PAUSED=2"


def test_after_ten_minutes_without_a_refusal_the_next_begins_a_new_streak() -> None:
    rig = Rig()
    for _ in range(3):
        rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 2)
        rig.advance(LULL - 1)
    rig.advance(1)
    rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 2)

    said = fields_of(rig, "stats")

    assert said["refused_requests_by_cause"] == "NOREPL=4"
    assert said["refused_lately_by_cause"] == "NOREPL=1"
    assert said["refused_since_by_cause"] == said["last_refused_by_cause"]


def test_jobs_that_nobody_acknowledges_in_time_are_counted_as_a_streak() -> None:
    rig = Rig()
    rig.ask("ADDJOB", "q", "body", 0, "RETRY", 5)
    for _ in range(3):
        rig.ask("GETJOB", "NOHANG", "FROM", "q")
        rig.advance(6_000)

    said = fields_of(rig, "tally")

    assert (said["jobs_requeued_lately"], said["jobs_delivered_meanwhile"]) == ("3", "2")
    assert int(said["jobs_requeued_last"]) - int(said["jobs_requeued_since"]) == 12


def test_an_addjob_whose_copies_do_not_come_in_time_is_counted() -> None:
    rig = Rig(peers=1)
    rig.request("ADDJOB", "q", "body", 50, "REPLICATE", 2)
    rig.advance(100)
    rig.replies()

    assert fields_of(rig, "stats")["refused_requests_by_cause"] == "NOREPL=1"


def test_looking_at_a_node_that_loads_is_no_refused_request() -> None:
    rig = Rig()
    rig.machine.load([], rig.now)
    for words in (("PING",), ("HELLO",), ("QSCAN",), ("SHOW", "D-1")):
        assert isinstance(rig.ask(*words), Failure)

    assert fields_of(rig, "stats")["refused_requests"] == "0"
    assert isinstance(rig.ask("ADDJOB", "q", "body", 0), Failure)
    assert fields_of(rig, "stats")["refused_lately_by_cause"] == "LOADING=1"


def test_that_a_node_leaves_is_counted() -> None:
    rig = Rig(peers=1)
    rig.ask("CLUSTER", "LEAVING", "yes")

    assert isinstance(rig.ask("GETJOB", "FROM", "q"), Failure)

    assert fields_of(rig, "stats")["refused_requests_by_cause"] == "LEAVING=1"


@pytest.mark.parametrize("code", sorted(REFUSALS))
def test_each_cause_has_a_sentence_and_advice(code: bytes) -> None:
    assert REFUSALS[code].why
    assert REFUSALS[code].advice


def test_want_of_memory_is_counted() -> None:
    rig = squeezed(2)

    assert isinstance(rig.ask("ADDJOB", "q", "body", 0), Failure)

    assert fields_of(rig, "stats")["refused_requests_by_cause"] == "OOM=1"
