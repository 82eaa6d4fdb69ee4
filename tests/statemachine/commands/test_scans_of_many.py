"""Scans of many queues or jobs: their replies are made as they are read."""

import pytest

from disque_trio.statemachine.base import Status
from disque_trio.wire.replies import encode_reply
from tests.rig import Rig
from tests.statemachine.commands.test_scans import names, page, rig_with_queues

FEW, STEPS, MOST = 8, 20, 60


def little(rig: Rig) -> Rig:
    """Replies are lengthy, and steps are over, sooner than usual."""
    rig.turn(peeked_at_once=FEW, steps_at_once=STEPS, scan_steps=MOST)
    return rig


@pytest.mark.parametrize("count", [FEW, FEW + 1, STEPS, 2 * STEPS + 1])
@pytest.mark.parametrize("words", [["COUNT", "99999"], ["BUSYLOOP"]])
def test_many_come_as_few_do(count: int, words: list[str]) -> None:
    rig = little(rig_with_queues(count))

    assert page(rig, "QSCAN", *words) == (b"0", names(count))
    assert page(rig, "JSCAN", *words) == (b"0", [Status(each) for each in rig.node.jobs])


@pytest.mark.parametrize("count", [FEW, 2 * FEW, STEPS + 1])
@pytest.mark.parametrize("words", [["COUNT", "99999"], ["BUSYLOOP"]])
def test_so_do_all_their_figures(count: int, words: list[str]) -> None:
    rig = little(rig_with_queues(count))

    _, queues = page(rig, "QSCAN", *words, "REPLY", "stat")
    _, jobs = page(rig, "JSCAN", *words, "REPLY", "all")

    assert queues[::2] == names(count)
    assert isinstance(queues[-1], bytes)
    assert queues[-1].startswith(b"1 0 1 0 ")
    assert jobs == [rig.ask("SHOW", each) for each in rig.node.jobs]


def test_a_queue_that_goes_while_its_figures_are_made_has_none() -> None:
    rig = little(rig_with_queues(FEW + 1))
    reply = rig.ask("QSCAN", "COUNT", 9999, "REPLY", "stat")
    rig.ask("DEBUG", "FLUSHALL")

    assert b"0 0 0 0 0 0 0 0 none" in encode_reply(reply)


def test_one_request_does_not_look_at_all_whatever_its_count() -> None:
    rig = little(Rig())
    for _ in range(MOST + 1):
        rig.add()

    cursor, items = page(rig, "JSCAN", "COUNT", 10 * MOST)

    assert len(items) == MOST
    assert len(page(rig, "JSCAN", cursor, "COUNT", 10)[1]) == 1


def test_the_rest_of_an_iteration_can_be_had_at_once() -> None:
    rig = little(rig_with_queues(STEPS + 10))
    for scan in ("QSCAN", "JSCAN"):
        cursor, first = page(rig, scan, "COUNT", 10)
        end, rest = page(rig, scan, cursor, "BUSYLOOP")

        assert end == b"0"
        assert len(first) + len(rest) == STEPS + 10
    assert not rig.node.scans
    assert not rig.node.job_scans
    assert not rig.node.table._walks
