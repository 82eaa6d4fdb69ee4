"""Scenarios with many queues, and consumers that come and go: what plans they come to."""

from collections import Counter
from pathlib import Path

import pytest

from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import ScenarioError, load
from disque_trio.sim.scenarios.plan import Plan

HEAD = 'schema = 1\nname = "x"\n[cluster]\nnodes = 3\n'


def plan_of(folder: Path, text: str) -> Plan:
    path = folder / "x.toml"
    path.write_text(HEAD + text)
    return expand(load(path), 1)


def test_a_star_stands_for_many_queues(tmp_path: Path) -> None:
    text = '[[producer]]\nrate = 20\njob = { queue = ["mail*3", "rest"] }\n'

    adds = plan_of(tmp_path, text).adds

    assert {add.queue for add in adds} == {"mail1", "mail2", "mail3", "rest"}


@pytest.mark.parametrize("queue", ['"mail*0"', '"mail*1001"', '"*3"', "[]", "3"])
def test_a_star_without_a_sensible_number_is_a_mistake(tmp_path: Path, queue: str) -> None:
    with pytest.raises(ScenarioError, match="queue"):
        plan_of(tmp_path, f"[[producer]]\nrate = 1\njob = {{ queue = {queue} }}\n")


def test_there_may_be_workers_for_each_queue(tmp_path: Path) -> None:
    text = '[[consumer]]\nworkers = 2\nqueues = "mail*4"\nby_queue = true\n'

    consumers = plan_of(tmp_path, text).consumers

    assert Counter((each.node, each.queues) for each in consumers) == Counter(
        {(node, (f"mail{number}",)): 2 for node in (1, 2, 3) for number in (1, 2, 3, 4)}
    )


def test_a_worker_may_read_some_of_the_queues(tmp_path: Path) -> None:
    text = '[[consumer]]\nworkers = 50\nqueues = "mail*4"\nreads = "1..3"\n'

    consumers = plan_of(tmp_path, text).consumers

    assert {len(each.queues) for each in consumers} == {1, 2, 3}
    assert all(len(set(each.queues)) == len(each.queues) for each in consumers)


def test_a_worker_reads_no_more_queues_than_there_are(tmp_path: Path) -> None:
    text = '[[consumer]]\nqueues = "mail*2"\nreads = 5\n'

    assert all(len(each.queues) == 2 for each in plan_of(tmp_path, text).consumers)


def test_consumers_that_come_and_go_have_their_visits(tmp_path: Path) -> None:
    visits = 'polls = "1..3"\nvisit = "1s..9s"\naway = "2s..4s"\nroams = true\n'

    consumer = plan_of(tmp_path, '[[consumer]]\nqueues = "q"\n' + visits).consumers[0]

    assert consumer.polls == (1, 3)
    assert consumer.visit == (1_000_000, 9_000_000)
    assert consumer.away == (2_000_000, 4_000_000)
    assert consumer.roams


def test_consumers_that_stay_are_never_away(tmp_path: Path) -> None:
    consumer = plan_of(tmp_path, '[[consumer]]\nqueues = "q"\n').consumers[0]

    assert (consumer.polls, consumer.visit, consumer.away) == ((0, 0), (0, 0), (0, 0))
