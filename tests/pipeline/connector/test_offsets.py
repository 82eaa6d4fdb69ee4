from typing import Any

import pytest

from disque_trio.pipeline.connector import offsets
from disque_trio.pipeline.connector.offsets import Batches, LostJobsError, Offset
from disque_trio.pipeline.errors import PipelineError
from tests.cluster.processes import SOON_S, Cluster, Fleet, eventually
from tests.pipeline.connector.desk import Desk, name_of

NOTE = "D-" + "a" * 38


def test_an_offset_comes_back_as_it_was() -> None:
    offset = Offset(7, "q", 3, (("a:1", NOTE), ("b:2", NOTE)))

    assert offsets.load(offset.dumped(), "q") == offset


def test_an_offset_of_an_earlier_release_names_no_queue() -> None:
    data = {"seq": 1, "count": 0, "notes": []}

    assert offsets.load(data, "q") == Offset(1, "q")


def test_an_offset_of_another_queue_is_not_taken() -> None:
    with pytest.raises(PipelineError, match="of a stream of the queue b, not b2"):
        offsets.load(Offset(1, "b").dumped(), "b2")


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"seq": 1},
        {"seq": "1", "count": 0, "notes": []},
        {"seq": 1, "count": 1, "notes": [["a:1", "D-short"]]},
        {"seq": 1, "count": 1, "notes": ["a:1"]},
        5,
    ],
)
def test_an_offset_of_another_source_is_not_taken(data: Any) -> None:
    with pytest.raises(PipelineError, match="belong to another query"):
        offsets.load(data, "q")


def test_the_ids_of_a_batch_are_in_the_cluster(desk: Desk, cluster: Cluster) -> None:
    jobs = {"a:1": [f"D-{n:038}" for n in range(12_000)], "b:2": [NOTE]}

    offset = Batches(desk.nodes(cluster), "q").keep(7, jobs)

    assert offset.count == 12_001
    assert len(str(offset.dumped())) < 500
    again = Batches(desk.nodes(cluster), "q")
    assert again.known(offset) == {}
    assert list(again.jobs(offset).items()) == list(jobs.items()), "in the same order"
    again.drop(offset)
    notes = [note.encode() for _, note in offset.notes]
    eventually(lambda: not any(map(cluster.holders, notes)), SOON_S, "the notes are gone")
    with pytest.raises(LostJobsError, match=r"the ids of 12,001 jobs .*; none are down"):
        Batches(desk.nodes(cluster), "q").jobs(offset)


def test_they_outlive_a_node(desk: Desk, fleet: Fleet) -> None:
    cluster = fleet.cluster(2)
    offset = Batches(desk.nodes(cluster), "q").keep(1, {"a:1": [NOTE]})
    ((node, _),) = offset.notes

    next(server for server in cluster.servers if name_of(server) == node).kill()

    batches = Batches(desk.nodes(cluster), "q")
    assert batches.jobs(offset) == {"a:1": [NOTE]}
    assert batches.keep(2, {"a:1": [NOTE]}).count == 1
