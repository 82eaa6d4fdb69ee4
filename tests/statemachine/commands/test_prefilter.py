"""JSCAN passes most jobs after cheap checks, and asks the counts of queues whether any are left."""

from collections.abc import Callable
from typing import Final

import pytest

from disque_trio.statemachine.base import ACTIVE, DEAD, QUEUED, Spilled, Status
from disque_trio.statemachine.commands.scans import phase_of
from disque_trio.statemachine.job import Job
from tests.rig import Rig
from tests.statemachine.commands.test_scans import everything, page

MANY = 40
"""More than a page of one job passes."""


def crowd(rig: Rig) -> list[Job]:
    """Queued jobs of a queue of their own."""
    return [rig.add(queue="crowd") for _ in range(MANY)]


def mixed() -> Rig:
    """Jobs of two queues in each state, among many others."""
    rig = Rig()
    for queue in ("a", "b"):
        buried, backing, leased = (rig.add(queue=queue) for _ in range(3))
        rig.ask("GETJOB", "COUNT", 3, "FROM", queue)
        rig.ask("NACK", buried.id, "DEAD", "ERROR", "KeyError: 'x'")
        rig.ask("NACK", backing.id, "DELAY", 60)
        crowd(rig)
        rig.add("DELAY", 60, queue=queue, body="to: ada")
        rig.add("UNIQUE", "k", "GROUP", "g", queue=queue)
        rig.advance(3000)
        rig.add(queue=queue, body="to: ada")
        assert phase_of(leased) == b"leased"
    return rig


FILTERS: Final[dict[str, Callable[[Rig, Job], bool]]] = {
    "QUEUE a": lambda _rig, job: job.queue == b"a",
    "STATE queued": lambda _rig, job: job.state == QUEUED,
    "STATE queued QUEUE b": lambda _rig, job: job.state == QUEUED and job.queue == b"b",
    "STATE dead STATE queued QUEUE b": lambda _rig, job: (
        job.state in (QUEUED, DEAD) and job.queue == b"b"
    ),
    "STATE dead STATE delayed": lambda _rig, job: job.state == DEAD or phase_of(job) == b"delayed",
    "STATE leased": lambda _rig, job: phase_of(job) == b"leased",
    "STATE restored": lambda _rig, job: phase_of(job) == b"restored",
    "STATE delayed QUEUE b": lambda _rig, job: phase_of(job) == b"delayed" and job.queue == b"b",
    "STATE backing-off STATE leased": lambda _rig, job: (
        phase_of(job) in (b"backing-off", b"leased")
    ),
    "STATE active QUEUE a": lambda _rig, job: job.state == ACTIVE and job.queue == b"a",
    "STATE acked STATE dead": lambda _rig, job: job.state == DEAD,
    "OLDER 4": lambda rig, job: rig.node.wall - job.made >= 4000,
    "YOUNGER 2 QUEUE a": lambda rig, job: job.queue == b"a" and rig.node.wall - job.made < 3000,
    "OLDER 4 QUEUE a STATE queued": lambda rig, job: (
        job.queue == b"a" and job.state == QUEUED and rig.node.wall - job.made >= 4000
    ),
    "KEY k": lambda _rig, job: job.extensions is not None and job.extensions.key == b"k",
    "GROUP g QUEUE b": lambda _rig, job: job.group == b"g" and job.queue == b"b",
    "ERROR KeyError STATE dead": lambda _rig, job: job.error.kind == b"KeyError",
    "BODY ada": lambda _rig, job: job.body == b"to: ada",
    "BODY ada STATE queued QUEUE a": lambda _rig, job: (
        job.body == b"to: ada" and job.queue == b"a" and job.state == QUEUED
    ),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("count", [1, 3, 100])
@pytest.mark.parametrize("words", FILTERS)
def test_each_job_that_fits_is_found_once_however_it_is_looked_for(words: str, count: int) -> None:
    rig = mixed()
    fitting = {job.id for job in rig.node.jobs.values() if FILTERS[words](rig, job)}

    found = everything(rig, "JSCAN", *words.split(), "COUNT", count)

    ids = [each.text for each in found if isinstance(each, Status)]
    assert (len(ids), set(ids)) == (len(fitting), fitting)


def test_the_queued_jobs_of_a_queue_are_found_at_once_among_many() -> None:
    rig = Rig()
    crowd(rig)
    jobs = [rig.add(queue="q"), rig.add(queue="q")]
    wanted = b"0", [Status(job.id) for job in jobs]

    assert page(rig, "JSCAN", "COUNT", 1, "QUEUE", "q", "STATE", "queued") == wanted
    words = ("STATE", "queued", "STATE", "active", "STATE", "dead")
    assert page(rig, "JSCAN", "COUNT", 1, "QUEUE", "q", *words) == wanted


def test_a_queue_that_has_only_dead_jobs_has_no_queued_ones() -> None:
    rig = Rig()
    job = rig.add(queue="q")
    rig.ask("NACK", job.id, "DEAD")
    rig.advance(600_000)
    assert not rig.node.queues, "it has neither jobs nor clients"

    words = ("QUEUE", "q", "STATE", "queued", "STATE", "dead")
    assert page(rig, "JSCAN", *words) == (b"0", [Status(job.id)])


@pytest.mark.parametrize("phase", ["delayed", "leased", "restored", "backing-off", "active"])
def test_what_no_queue_counts_is_not_looked_for(phase: str) -> None:
    rig = Rig()
    crowd(rig)

    assert page(rig, "JSCAN", "COUNT", 1, "STATE", phase) == (b"0", [])
    assert page(rig, "JSCAN", "COUNT", 1, "STATE", phase, "QUEUE", "crowd") == (b"0", [])


def test_a_walk_ends_with_the_last_job_that_is_counted() -> None:
    rig = Rig()
    delayed, leased = rig.add("DELAY", 60, queue="a"), rig.add(queue="b")
    rig.ask("GETJOB", "FROM", "b")
    crowd(rig)

    assert page(rig, "JSCAN", "COUNT", 1, "STATE", "delayed") == (b"0", [Status(delayed.id)])
    words = ("STATE", "delayed", "STATE", "leased")
    assert page(rig, "JSCAN", "COUNT", 3, *words) == (
        b"0",
        [Status(delayed.id), Status(leased.id)],
    )


def test_a_walk_that_goes_on_is_not_ended_by_jobs_that_it_has_passed() -> None:
    rig = Rig()
    first = rig.add("DELAY", 60, queue="a")
    crowd(rig)
    last = rig.add("DELAY", 60, queue="a")
    cursor, found = page(rig, "JSCAN", "COUNT", 1, "STATE", "delayed")
    assert found == [Status(first.id)]
    rig.ask("DELJOB", first.id)

    while cursor != b"0":
        cursor, items = page(rig, "JSCAN", cursor, "COUNT", 1, "STATE", "delayed")
        found += items

    assert found == [Status(first.id), Status(last.id)]


def test_of_very_many_queues_no_sum_is_made() -> None:
    rig = Rig()
    for number in range(MANY):
        rig.add("DELAY", 60, queue=f"q{number}")

    cursor, items = page(rig, "JSCAN", "COUNT", 1, "STATE", "delayed")

    assert (cursor != b"0", len(items)) == (True, 1)
    assert len(everything(rig, "JSCAN", "COUNT", 1, "STATE", "delayed")) == MANY


def test_a_body_that_is_on_disk_has_no_text() -> None:
    rig = Rig()
    job = rig.add(body="to: ada")
    kept = rig.add(body="to: ada")
    rig.machine.spilled([job], [Spilled(7)])

    assert page(rig, "JSCAN", "BODY", "ada") == (b"0", [Status(kept.id)])
