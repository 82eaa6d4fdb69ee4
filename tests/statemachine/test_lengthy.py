"""Replies of many values: how much of them is left, and what they take when a job goes."""

import pytest

from disque_trio.statemachine import counts
from disque_trio.statemachine.base import CommandError, Failure
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.lengthy import JobsLeft, of_names, whole
from tests.rig import Rig

BODY = "x" * 100


def test_a_peek_at_many_jobs_shows_them_as_one_at_few_does() -> None:
    rig = Rig()
    ids = [rig.add(body=f"body {number}").id for number in range(DEFAULTS.peeked_at_once + 10)]

    shown = whole(rig.ask("QPEEK", "q", DEFAULTS.peeked_at_once + 10))

    assert shown == [[b"q", id, b"body %d" % number] for number, id in enumerate(ids)]
    assert whole(rig.ask("QPEEK", "q", 2)) == shown[:2]


def test_parts_may_be_closed_after_the_last_one() -> None:
    rig = Rig()
    replies = [
        of_names([b"a", b"b"], lambda name: [name], [], 0).parts,
        JobsLeft(rig.node, [rig.add()]).parts([], lambda job, _: job.id),
    ]
    for parts in replies:
        assert list(parts)
        parts.close()
        parts.close()


def test_what_is_left_counts_the_bodies_and_apart_those_of_jobs_that_have_gone() -> None:
    rig = Rig()
    jobs = [rig.add(body=BODY) for _ in range(3)]
    left = JobsLeft(rig.node, jobs)
    all_, alone = left.sizes()
    assert all_ >= 3 * len(BODY)
    assert alone == 0

    rig.ask("DELJOB", jobs[1].id)
    assert left.sizes() == (all_, all_ // 3)
    parts = left.parts([], lambda job, _: job.id, some=2)
    next(parts)
    assert next(parts) == [jobs[0].id, jobs[1].id]
    assert left.sizes() == (all_ // 3, 0)


def test_out_of_memory_only_what_has_changed_nothing_is_answered() -> None:
    node = Rig().node

    assert counts.refusal(node, MemoryError(), is_whole=True) == Failure(counts.OUT_OF_MEMORY)
    assert counts.refusal(node, CommandError(b"ERR no"), is_whole=False) == Failure(b"ERR no")
    with pytest.raises(MemoryError):
        counts.refusal(node, MemoryError(), is_whole=False)
