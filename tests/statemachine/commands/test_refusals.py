"""Requests that are refused because of trouble of the node, a queue or the cluster."""

import pytest

from disque_trio.statemachine.base import Failure
from disque_trio.statemachine.refusals import REFUSALS
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


def test_an_addjob_whose_copies_do_not_come_in_time_is_counted() -> None:
    rig = Rig(peers=1)
    rig.request("ADDJOB", "q", "body", 50, "REPLICATE", 2)
    rig.advance(100)
    rig.replies()

    assert fields_of(rig, "stats")["refused_requests_by_cause"] == "NOREPL=1"


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
