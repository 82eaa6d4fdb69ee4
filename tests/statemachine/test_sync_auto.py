"""ADDJOB SYNC AUTO: answered after a majority of the copies, unless `default-sync` says more."""

import pytest

from disque_trio.statemachine.base import QUEUED, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import GotJob
from tests.rig import ME, N2, N3, Rig
from tests.statemachine.commands.refused import Refused
from tests.statemachine.replicating import waiting_job


@pytest.mark.parametrize(
    ("peers", "options", "replicas", "awaited"),
    [
        (1, (), 2, 2),
        (2, (), 3, 2),
        (3, (), 3, 2),
        (3, ("REPLICATE", 4), 4, 3),
        (2, ("REPLICATE", 2), 2, 2),
    ],
)
def test_sync_auto_is_a_majority_of_the_copies_that_the_cluster_can_hold(
    peers: int, options: tuple[str | int, ...], replicas: int, awaited: int
) -> None:
    rig = Rig(peers=peers)
    job = waiting_job(rig, *options, "SYNC", "auto")

    assert job.replicas == replicas
    for holder in [each for each in job.holders if each != ME][: awaited - 1]:
        assert rig.replies() == []
        rig.message(holder, GotJob(job.id))
    assert rig.replies() == [Status(job.id)]


def test_sync_auto_of_one_copy_is_answered_at_once() -> None:
    assert Rig().add("SYNC", "AUTO").state == QUEUED
    assert Rig(peers=2).add("REPLICATE", 1, "SYNC", "AUTO").state == QUEUED


def test_default_sync_is_stronger_than_sync_auto() -> None:
    rig = Rig(peers=2, config=Config(default_sync=3))
    job = waiting_job(rig, "SYNC", "AUTO")

    rig.message(N2, GotJob(job.id))
    assert rig.replies() == []
    rig.message(N3, GotJob(job.id))
    assert rig.replies() == [Status(job.id)]


@pytest.mark.parametrize("words", ["SYNC AUTO SYNC 2", "SYNC AUTO SYNC AUTO", "SYNC AUTO ASYNC"])
def test_sync_auto_is_given_once_and_without_async(words: str) -> None:
    assert Rig(peers=2).ask("ADDJOB", "q", "b", 0, *words.split()) == Refused(b"ERR syntax error")


def test_a_number_that_one_node_cannot_hold_is_refused_still() -> None:
    assert Rig().ask("ADDJOB", "q", "b", 0, "SYNC", 2) == Refused(b"NOREPL")
