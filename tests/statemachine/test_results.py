"""Results of jobs: ACKJOB RESULT, WAITJOB WITHRESULT, SHOW, and what holders tell each other."""

import attrs
import pytest

from disque_trio.statemachine.base import (
    CAPABILITIES,
    EXTENDS,
    RESULTS,
    Failure,
    JobId,
    NodeId,
    Now,
    Reply,
)
from disque_trio.statemachine.job import digest_of
from disque_trio.statemachine.journaling import kept_results
from disque_trio.statemachine.memory import RESULT_BYTES
from disque_trio.statemachine.messages import (
    DelJob,
    GotAck,
    Message,
    Queued,
    ReplJob,
    Result,
    SetAck,
)
from disque_trio.statemachine.records import StoredResult
from tests.rig import CALM, JOB, ME, N2, N3, WALL, Rig, copy_of
from tests.statemachine.giving import cluster, delivered, held

DONE = b"done\0\xff"
OF_ALL = digest_of((N2, N3, ME))
LATER = Result(JOB, 3, WALL + 5000, 60_000, b"later")


def acked(rig: Rig, *options: object, job_id: JobId = JOB) -> Reply:
    return rig.ask("ACKJOB", job_id, "RESULT", DONE, *options)  # type: ignore[arg-type]


def result(rig: Rig, job_id: JobId = JOB) -> Reply:
    """What a client is told that waits."""
    return rig.ask("WAITJOB", job_id, "NOHANG", "WITHRESULT")


def said(rig: Rig) -> list[tuple[NodeId, Message]]:
    return [(to, each) for to, each in rig.sent() if isinstance(each, Result | SetAck)]


def shown(rig: Rig, job_id: JobId = JOB) -> dict[bytes, object]:
    reply = rig.ask("SHOW", job_id)
    assert isinstance(reply, list)
    return dict(zip(reply[::2], reply[1::2], strict=True))  # type: ignore[arg-type]


def test_a_message_with_a_result_says_when_and_for_how_long_in_traces() -> None:
    assert LATER.detail({}) == f"holders=3 at={WALL + 5000} left=60000"


def test_the_result_of_a_job_outlives_it_for_so_long() -> None:
    rig = Rig()
    job = rig.add()

    assert acked(rig, "KEEP", "1.5", job_id=job.id) == 1
    assert rig.node.jobs == {}
    assert result(rig, job.id) == [b"acked", DONE]

    rig.advance(1490)
    assert result(rig, job.id) == [b"acked", DONE]
    rig.advance(30)
    assert isinstance(result(rig, job.id), Failure)
    assert rig.ask("SHOW", job.id) is None


def test_without_keep_it_is_kept_for_an_hour() -> None:
    rig = Rig()
    job = rig.add()
    acked(rig, job_id=job.id)

    rig.advance(3_599_000)
    assert result(rig, job.id) == [b"acked", DONE]
    rig.advance(2000)
    assert isinstance(result(rig, job.id), Failure)


def test_show_has_the_result_and_how_long_it_is_kept() -> None:
    rig = Rig()
    job = rig.add()
    acked(rig, "KEEP", 60, job_id=job.id)
    rig.advance(10_000)

    facts = shown(rig, job.id)

    assert (facts[b"state"], facts[b"queue"], facts[b"result"]) == (b"acked", b"q", DONE)
    assert (facts[b"result-at"], facts[b"result-kept-within"]) == (WALL, 50_000)
    ended = rig.ask("SHOW", job.id, "ENDED")
    assert isinstance(ended, list)
    assert DONE in ended
    assert b"acknowledged" in ended


def test_a_client_that_waits_is_told_the_result() -> None:
    rig = Rig()
    job = rig.add()
    plain = rig.connect()
    rig.request("WAITJOB", job.id, "WITHRESULT")
    rig.request("WAITJOB", job.id, client=plain)

    rig.ask("ACKJOB", job.id, "KEEP", 5, "result", DONE, client=rig.connect())

    assert rig.replies() == [[b"acked", DONE]]
    assert rig.replies(plain) == [b"acked"]


def test_a_job_without_a_result_has_none() -> None:
    rig = Rig()
    first, second, third = rig.add(), rig.add(), rig.add()
    for job in (first, second, third):
        rig.request("WAITJOB", job.id, "WITHRESULT", client=(waits := rig.connect()))
        rig.request(*{first: ("ACKJOB",), second: ("NACK",), third: ("FASTACK",)}[job], job.id,
                    *(("DEAD", "why") if job is second else ()), client=rig.connect())  # fmt: skip
        assert rig.replies(waits) == [[b"dead" if job is second else b"acked", None]]
    assert result(rig, second.id) == [b"dead", None]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((JOB, JOB, "RESULT", "x"), b"ERR RESULT is for one job: ACKJOB names 2"),
        ((JOB, "KEEP", 5), b"ERR KEEP is for results: it needs RESULT"),
        ((JOB, "RESULT"), b"ERR syntax error: RESULT has no value behind it"),
        ((JOB, "RESULT", "x", "KEEP", 0), b"ERR KEEP must be seconds from 0.001"),
        ((JOB, "RESULT", "x", "RESULT", "y"), b"ERR syntax error: RESULT is given twice"),
        ((JOB, "RESULTS", "x"), b"BADID"),
        (("nobody", "RESULT", "x"), b"BADID"),
        ((JOB, "RESULT", "x" * 11), b"ERR A result has at most 10 bytes (result-max-bytes): this"),
    ],
)
def test_wrong_options_acknowledge_nothing(words: tuple[str, ...], error: bytes) -> None:
    rig = cluster()
    job = delivered(rig)
    rig.ask("CONFIG", "SET", "result-max-bytes", 10)

    reply = rig.ask("ACKJOB", *words)

    assert isinstance(reply, Failure)
    assert reply.text.startswith(error)
    assert job.state != 3
    assert rig.node.results == {}


def test_while_memory_is_short_no_result_is_taken_and_no_job_acknowledged() -> None:
    rig = Rig()
    job = rig.add()
    rig.ask("CONFIG", "SET", "maxmemory", 1)

    reply = acked(rig, job_id=job.id)

    assert isinstance(reply, Failure)
    assert reply.text.startswith(b"OOM")
    assert job.id in rig.node.jobs
    assert rig.ask("ACKJOB", job.id) == 1


def test_results_are_in_the_account_of_memory_until_they_go() -> None:
    rig = Rig()
    job = rig.add()
    rig.ask("ACKJOB", rig.add().id)
    held_before = rig.node.memory.held - 421 - len(b"body")

    acked(rig, "KEEP", 5, job_id=job.id)
    assert rig.node.memory.held == held_before + RESULT_BYTES + len(b"q") + len(DONE)

    rig.advance(6000)
    assert rig.node.memory.held == held_before


# The other nodes.


def test_the_holders_are_told_with_the_acknowledgement() -> None:
    rig = cluster()
    delivered(rig)

    acked(rig, "KEEP", 60)

    told = Result(JOB, 3, rig.now.wall, 60_000, DONE, OF_ALL)
    assert said(rig) == [(N2, told), (N3, told)]


def test_it_is_told_again_until_they_have_confirmed() -> None:
    rig = cluster()
    delivered(rig)
    acked(rig, "KEEP", 60)
    rig.message(N3, GotAck(JOB, known=True))
    rig.sent()

    rig.advance(9000)

    again = said(rig)
    assert again
    assert {to for to, _ in again} == {N2}
    assert all(isinstance(each, Result) and 51_000 <= each.left < 60_000 for _, each in again)
    rig.message(N2, GotAck(JOB, known=True))
    assert [each for _, each in rig.sent()] == [DelJob(JOB), DelJob(JOB)]
    assert result(rig) == [b"acked", DONE]


def test_nodes_that_know_no_results_get_a_plain_setack() -> None:
    rig = cluster()
    rig.node.cluster.nodes[N2].capabilities = CAPABILITIES & ~RESULTS
    delivered(rig)

    acked(rig)

    assert [(to, type(each)) for to, each in said(rig)] == [(N3, Result), (N2, SetAck)]
    assert RESULTS & CAPABILITIES
    assert not RESULTS & EXTENDS


def test_a_holder_keeps_what_it_is_told() -> None:
    rig = cluster()
    job = held(rig)
    rig.request("WAITJOB", JOB, "WITHRESULT")

    rig.message(N2, LATER)

    assert rig.replies() == [[b"acked", b"later"]]
    assert job.state == 3
    assert (N2, GotAck(JOB, known=True)) in rig.sent()
    rig.message(N2, DelJob(JOB))
    assert result(rig) == [b"acked", b"later"]
    assert shown(rig)[b"queue"] == b"q"
    rig.advance(60_100)
    assert isinstance(result(rig), Failure)


def test_the_last_holder_but_one_keeps_it_too() -> None:
    rig = cluster()
    rig.hold(copy_of(holders=(N2, ME), retry=60))

    rig.message(N2, Result(JOB, 2, WALL, 60_000, DONE))

    assert rig.node.jobs == {}
    assert result(rig) == [b"acked", DONE]


def test_a_node_that_does_not_hold_the_job_keeps_no_result_of_others() -> None:
    rig = cluster()

    rig.message(N2, LATER)
    rig.ask("ACKJOB", JOB)
    rig.message(N2, LATER)

    assert rig.node.results == {}


def test_neither_does_one_that_is_short_of_memory() -> None:
    rig = cluster()
    job = held(rig)
    rig.ask("CONFIG", "SET", "maxmemory", 1)

    rig.message(N2, LATER)

    assert job.state == 3
    assert rig.node.results == {}


def test_of_two_results_the_earlier_one_holds_wherever_it_comes_from() -> None:
    earlier = Result(JOB, 3, WALL - 5000, 60_000, b"earlier")
    for first, second in ((LATER, earlier), (earlier, LATER)):
        rig = cluster()
        held(rig)
        rig.message(N2, first)
        rig.message(N3, second)
        rig.message(N3, second)

        assert result(rig) == [b"acked", b"earlier"]
        assert rig.node.memory.held >= RESULT_BYTES
        rig.advance(61_000)
        assert rig.node.results == {}


def test_an_acknowledged_job_takes_no_other_result() -> None:
    rig = cluster()
    delivered(rig)
    acked(rig)

    assert rig.ask("ACKJOB", JOB, "RESULT", "other") == 0
    assert result(rig) == [b"acked", DONE]

    rig = cluster()
    delivered(rig)
    rig.ask("ACKJOB", JOB)
    assert acked(rig) == 0
    assert result(rig) == [b"acked", None]


def test_a_result_over_its_time_is_not_told_even_before_its_timer_comes() -> None:
    rig = cluster()
    delivered(rig)
    acked(rig, "KEEP", 60)
    rig.sent()
    kept = rig.node.results[JOB]
    rig.now = Now(kept.until + 1, rig.now.wall)

    rig.message(N2, Queued(JOB))

    assert rig.node.results == {JOB: kept}
    assert said(rig) == [(N2, SetAck(JOB, 3, OF_ALL))]


def test_a_result_over_its_time_is_not_kept() -> None:
    rig = cluster()
    held(rig)

    rig.message(N2, Result(JOB, 3, WALL, 0, DONE))

    assert rig.node.results == {}


def test_at_a_node_without_the_job_all_nodes_are_told() -> None:
    rig = cluster()

    assert acked(rig, "KEEP", 60) == 0

    assert said(rig) == [(each, Result(JOB, 0, rig.now.wall, 60_000, DONE)) for each in (N2, N3)]
    assert result(rig) == [b"acked", DONE]


def test_a_leaving_node_tells_all_others_once() -> None:
    rig = cluster()
    rig.ask("CLUSTER", "LEAVING", "yes")
    rig.sent()

    acked(rig, "KEEP", 60)

    assert {(to, type(each)) for to, each in said(rig)} == {(N2, Result), (N3, Result)}
    assert rig.node.jobs == {}


def test_a_node_that_returns_with_a_copy_is_told_the_result() -> None:
    rig = cluster()
    delivered(rig)
    acked(rig)
    for each in (N2, N3):
        rig.message(each, GotAck(JOB, known=True))
    rig.sent()

    rig.message(N2, ReplJob((copy_of(holders=(N2, N3, ME)),)))

    assert [(to, type(each)) for to, each in said(rig)] == [(N2, Result)]


def test_results_of_other_jobs_change_nothing() -> None:
    rig = cluster()
    delivered(rig)
    acked(rig)
    rig.sent()
    other = b"D-bbbbbbbb-BBBBBBBBBBBBBBBBBBBBBBBB-05a1"
    held(rig, job_id=other)

    rig.ask("ACKJOB", other, JOB)

    assert (N2, SetAck(other, 3, OF_ALL)) in rig.sent()


def test_flushing_drops_results() -> None:
    rig = Rig()
    job = rig.add()
    acked(rig, job_id=job.id)

    rig.ask("DEBUG", "FLUSHALL")

    assert rig.node.results == {}
    assert rig.node.memory.held == 0


# The journal.


def stored(rig: Rig) -> list[StoredResult]:
    return [each for out in rig.outboxes for each in out.records if isinstance(each, StoredResult)]


def test_a_restart_keeps_results_for_the_rest_of_their_time() -> None:
    rig = Rig(config=attrs.evolve(CALM, appendonly=True))
    job = rig.add()
    acked(rig, "KEEP", 60, job_id=job.id)
    [record] = stored(rig)
    assert record == StoredResult(job.id, b"q", WALL, WALL + 60_000, DONE)
    assert list(kept_results(rig.node)) == [record]

    later = Rig(config=CALM)
    later.now = Now(later.now.mono + 10_000, WALL + 10_000)
    later.machine.load([record, StoredResult(JOB, b"q", WALL, WALL + 9000, b"over")], later.now)
    assert later.machine.loaded(later.now)

    assert result(later, job.id) == [b"acked", DONE]
    assert isinstance(result(later), Failure)
    assert shown(later, job.id)[b"result-kept-within"] == 50_000


@pytest.mark.parametrize("is_gone", [True, False])
def test_deljob_drops_the_result_here_also_after_a_restart(is_gone: bool) -> None:
    rig = Rig(peers=0 if is_gone else 2, config=attrs.evolve(CALM, appendonly=True), ours=True)
    job = rig.add() if is_gone else delivered(rig)
    acked(rig, "KEEP", 60, job_id=job.id)
    assert (job.id in rig.node.jobs) is not is_gone

    assert rig.ask("DELJOB", JOB, job.id) == (0 if is_gone else 1)

    assert isinstance(result(rig, job.id), Failure)
    assert rig.node.results == {}
    given, deleted = stored(rig)
    assert (deleted.id, deleted.until, deleted.value) == (job.id, 0, b"")
    later = Rig(config=CALM)
    later.machine.load([given, deleted, attrs.evolve(deleted, id=JOB)], later.now)
    assert later.machine.loaded(later.now)
    assert isinstance(result(later, job.id), Failure)


def test_a_file_of_the_original_has_no_place_for_results() -> None:
    rig = Rig(config=attrs.evolve(CALM, appendonly=True))
    rig.node.facts.capabilities = 0
    job = rig.add()
    acked(rig, job_id=job.id)
    rig.ask("DELJOB", job.id)

    assert stored(rig) == []
    assert list(kept_results(rig.node)) == []
