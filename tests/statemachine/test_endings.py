"""Jobs that have ended: what is remembered, for how long, and what it takes."""

import tracemalloc
from typing import Any

import pytest

from disque_trio.statemachine import endings, pressure
from disque_trio.statemachine.base import Failure, Spilled, Status
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.endings import SHEET, Endings
from disque_trio.statemachine.events import Cause
from tests.rig import Rig

TWO_SHEETS = 2 * SHEET


def ask(rig: Rig, *words: bytes | str | int) -> Any:
    return rig.ask(*words)


def ended_of(reply: Any) -> list[dict[str, Any]]:
    return [
        {name.decode(): value for name, value in zip(row[::2], row[1::2], strict=True)}
        for row in reply[1]
    ]


def page(rig: Rig, *options: str | int) -> list[dict[str, Any]]:
    return ended_of(ask(rig, "JSCAN", "0", "STATE", "ended", "REPLY", "full", *options))


def end_many(rig: Rig, count: int, queue: str = "q") -> list[bytes]:
    ids = [rig.add(queue=queue).id for _ in range(count)]
    rig.ask("ACKJOB", *ids)
    return ids


def test_an_acknowledged_job_is_remembered_with_all_that_matters() -> None:
    rig = Rig()
    rig.ask("CLIENT", "SETNAME", "worker-1")
    job = rig.add("UNIQUE", "k", "RETRY", 5, body="x" * 100)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", job.id, "ERROR", "ValueError: no\nload.py:3")
    rig.ask("GETJOB", "FROM", "q")
    ctime, ended = job.ctime, rig.node.wall
    rig.ask("ACKJOB", job.id)

    [told] = page(rig)

    assert told["id"] == job.id
    assert (told["queue"], told["state"], told["outcome"]) == (b"q", b"ended", b"acknowledged")
    assert (told["by"], told["key"], told["nacks"]) == (b"worker-1", b"k", 1)
    assert told["ctime"] == ctime
    assert told["ended-at"] == ended
    assert told["error"] == b"ValueError: no\nload.py:3"
    assert (told["body"], told["body-start"]) == (None, b"x" * 64)
    assert page(rig, "ERROR", "ValueError") == page(rig, "KEY", "k") == [told]
    assert page(rig, "ERROR", "KeyError") == page(rig, "KEY", "other") == []


def test_jobs_of_one_millisecond_keep_their_order_when_they_have_ended() -> None:
    rig = Rig()
    jobs = [rig.add(), rig.add(), rig.add()]
    ctimes = [job.ctime for job in jobs]
    rig.ask("ACKJOB", *[job.id for job in jobs[::-1]])

    assert len({job.made for job in jobs}) == 1
    assert {told["id"]: told["ctime"] for told in page(rig)} == {
        job.id: ctime for job, ctime in zip(jobs, ctimes, strict=True)
    }
    assert ctimes == sorted(set(ctimes))


def test_a_short_body_is_kept_whole() -> None:
    rig = Rig()
    rig.ask("ACKJOB", rig.add("PRIORITY", 1, body="short").id)

    [told] = page(rig)

    assert told["body"] == b"short"
    assert "body-start" not in told
    assert told["by"].startswith(b"1")  # a client without a name has its address


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        (("FASTACK",), b"acknowledged"),
        (("DELJOB",), b"deleted"),
        (("NACK", "DEAD"), b"dropped"),
    ],
)
def test_an_outcome_says_what_became_of_the_job(words: tuple[str, ...], outcome: bytes) -> None:
    rig = Rig()
    job = rig.add()
    rig.ask(words[0], job.id, *words[1:])
    if outcome == b"dropped":
        assert page(rig) == []
        rig.ask("PURGE", "q", "DEAD")

    [told] = page(rig)

    assert told["outcome"] == outcome


def test_expired_purged_and_cancelled_jobs_have_ended() -> None:
    rig = Rig()
    rig.add("TTL", 2, "RETRY", 1)
    rig.advance(3_000)
    rig.add(queue="p")
    rig.ask("PURGE", "p")
    rig.add("UNIQUE", "k", queue="c")
    rig.ask("CANCEL", "KEY", "c", "k")

    assert [told["outcome"] for told in page(rig)] == [b"cancelled", b"purged", b"expired"]
    assert all("by" not in told for told in page(rig))


def test_why_a_dead_job_was_dead_is_remembered() -> None:
    rig = Rig()
    job = rig.add("UNIQUE", "k")
    rig.ask("NACK", job.id, "ERROR", b"E: " + b"x" * 3000, "DEAD", "no use")
    rig.ask("ACKJOB", job.id)

    [told] = page(rig)

    assert (told["outcome"], told["reason"]) == (b"dropped", b"no use")
    assert told["error"] == (b"E: " + b"x" * 3000)[:512]


def test_a_job_of_a_sheet_keeps_its_own_numbers() -> None:
    rig = Rig()
    plain, tried = rig.add(body="p"), rig.add("RETRY", 1, body="t")
    rig.ask("GETJOB", "COUNT", 2, "FROM", "q")
    rig.advance(2_000)
    rig.ask("GETJOB", "FROM", "q")
    rig.ask("NACK", tried.id)
    rig.ask("ACKJOB", plain.id, tried.id)

    told = {each["id"]: (each["nacks"], each["additional-deliveries"]) for each in page(rig)}

    assert told == {plain.id: (0, 0), tried.id: (1, 1)}


def test_a_body_on_disk_hides_no_body_beside_it() -> None:
    rig = Rig()
    here, spilled = rig.add(body="x" * 64), rig.add()
    spilled.body = Spilled(1000)
    kept = Endings(10)
    assert kept.rows is not None
    kept.rows += [(here, Cause.PURGE, b"", 1), (spilled, Cause.PURGE, b"", 1)]

    [sheet] = kept.newest(kept.end)

    assert [sheet.head(0), sheet.head(1)] == [b"x" * 64, b""]


@pytest.mark.parametrize("said", [(), ("UNIQUE", "k")])
def test_a_record_weighs_about_150_bytes_and_is_accounted_as_it_is(said: tuple[str, ...]) -> None:
    rig = Rig()
    jobs = [rig.add(*said, body=f"{each}") for each in range(SHEET)]
    kept = Endings(TWO_SHEETS)
    assert kept.rows is not None
    rows = [(job, Cause.ACKJOB, b"client", 1) for job in jobs]
    kept.rows += rows
    kept.fit(1 << 30)  # what the first sheet leaves in caches is no part of the second
    weight = kept.weight
    kept.rows += rows
    tracemalloc.start()
    try:
        kept.fit(1 << 30)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept.rows == []
    assert 0.5 * weight <= taken <= 1.05 * weight
    assert said or taken < 160 * SHEET


def test_show_of_a_job_that_has_ended_is_null_unless_it_is_asked_for() -> None:
    rig = Rig()
    job = rig.add()
    assert ask(rig, "SHOW", job.id, "ENDED") == ask(rig, "SHOW", job.id)
    rig.ask("ACKJOB", job.id)

    assert ask(rig, "SHOW", job.id) is None
    assert ask(rig, "SHOW", job.id, "ENDED")[1] == job.id
    assert ask(rig, "SHOW", job.id.replace(b"D-", b"D-", 1)[:-1] + b"0", "ENDED") is None
    assert isinstance(ask(rig, "SHOW", job.id, "GONE"), Failure)


def test_any_of_many_is_found_by_its_id() -> None:
    rig = Rig()
    ids = end_many(rig, TWO_SHEETS + 10)

    assert [ask(rig, "SHOW", id, "ENDED")[1] for id in ids] == ids


def test_a_search_among_many_goes_in_steps_and_others_are_served_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endings, "ROWS_AT_ONCE", 50)
    monkeypatch.setattr(endings, "SHEETS_AT_ONCE", 1)
    rig = Rig()
    ids = end_many(rig, 2 * TWO_SHEETS + 70)
    rig.node.endings.fit(1 << 30)
    assert len(rig.node.endings.rows or ()) == 70
    other = rig.connect()

    rig.request("SHOW", ids[0], "ENDED")
    assert rig.replies() == []
    assert rig.ask("PING", client=other) == Status(b"PONG")
    end_many(rig, 1)
    assert rig.node.long_commands
    rig.advance(1_000)
    assert rig.reply()[1] == ids[0]  # type: ignore[index]

    for unknown in (ids[0][:-1] + b"0", *ids[-60::30]):
        rig.request("SHOW", unknown, "ENDED")
        rig.advance(1_000)
        assert bool(rig.reply()) is (unknown in ids)


def test_records_of_a_burst_are_shown_before_they_are_in_sheets() -> None:
    rig = Rig()
    ids = end_many(rig, TWO_SHEETS + 10)

    assert [told["id"] for told in page(rig, "COUNT", 20)] == ids[:-21:-1]
    assert len(rig.node.endings.rows or ()) == len(ids)


def test_an_id_is_found_at_its_place_only() -> None:
    rig = Rig()
    ids = end_many(rig, 3)
    across = ids[0][20:] + ids[1][:20]
    [sheet] = rig.node.endings.newest(rig.node.endings.end)

    assert sheet.find(across) == -1
    assert [sheet.find(id) for id in ids] == [0, 1, 2]


def test_pages_go_from_the_newest_to_the_oldest_though_jobs_end_meanwhile() -> None:
    rig = Rig()
    ids = end_many(rig, TWO_SHEETS + 50)
    seen: list[bytes] = []
    cursor: Any = b"0"
    while True:
        cursor, found = ask(rig, "JSCAN", cursor, "STATE", "ended", "COUNT", 100)
        assert len(found) <= 100
        seen += [status.text for status in found]
        if cursor == b"0":
            break
        end_many(rig, 7)

    assert seen == ids[::-1]


def test_a_call_passes_a_limited_number_and_returns_a_limited_number() -> None:
    rig = Rig()
    end_many(rig, 300, "many")
    end_many(rig, 1, "one")
    end_many(rig, 300, "many")

    cursor, found = ask(rig, "JSCAN", "STATE", "ended", "QUEUE", "one", "COUNT", 2)
    assert (found, cursor) == ([], b"582")
    _, found = ask(rig, "JSCAN", "STATE", "ended", "QUEUE", "one", "COUNT", 200)
    assert len(found) == 1
    _, found = ask(rig, "JSCAN", "STATE", "ended", "COUNT", 20_000)
    assert len(found) == 256


def test_other_states_come_first() -> None:
    rig = Rig()
    [gone] = end_many(rig, 1)
    job = rig.add()

    cursor, found = ask(rig, "JSCAN", "STATE", "queued", "STATE", "ended")
    assert found == [Status(job.id)]
    assert ask(rig, "JSCAN", cursor, "STATE", "queued", "STATE", "ended") == [b"0", [Status(gone)]]


def test_filters_by_age_and_text() -> None:
    rig = Rig()
    rig.ask("ACKJOB", rig.add(body="old").id)
    rig.advance(60_000)
    rig.ask("ACKJOB", rig.add(body="new").id)

    assert [told["body"] for told in page(rig, "OLDER", 30)] == [b"old"]
    assert [told["body"] for told in page(rig, "YOUNGER", 30)] == [b"new"]
    assert [told["body"] for told in page(rig, "BODY", "ol")] == [b"old"]


def test_busyloop_is_refused() -> None:
    assert isinstance(Rig().ask("JSCAN", "STATE", "ended", "BUSYLOOP"), Failure)


def test_the_oldest_beyond_the_limit_are_dropped() -> None:
    rig = Rig(config=Config(ended_jobs=300, trace_sample=0))
    ids = end_many(rig, TWO_SHEETS + 100)
    rig.advance(1_000)
    pressure.review(rig.node)

    assert rig.node.endings.count <= 300
    assert page(rig, "COUNT", 1)[0]["id"] == ids[-1]
    assert ask(rig, "SHOW", ids[0], "ENDED") is None


def test_a_small_limit_is_kept_to_the_job() -> None:
    rig = Rig(config=Config(ended_jobs=5, trace_sample=0))
    ids = end_many(rig, 9)
    pressure.review(rig.node)

    assert [told["id"] for told in page(rig)] == ids[:3:-1]


def test_the_limit_can_be_changed_and_0_turns_it_off() -> None:
    rig = Rig()
    [first] = end_many(rig, 1)
    rig.ask("CONFIG", "SET", "ended-jobs", 0)
    end_many(rig, 1)
    assert page(rig) == []
    assert ask(rig, "SHOW", first, "ENDED") is None
    rig.ask("ACKJOB", rig.add(body="b" * 500).id)

    rig.ask("CONFIG", "SET", "ended-jobs", 10)
    [last] = end_many(rig, 1)
    rig.ask("CONFIG", "SET", "ended-jobs", 20)
    assert [told["id"] for told in page(rig)] == [last]
    assert rig.ask("CONFIG", "GET", "ended-jobs") == [b"ended-jobs", b"20"]


def test_debug_flushall_forgets_them_and_numbers_go_on() -> None:
    rig = Rig()
    end_many(rig, 3)
    rig.ask("DEBUG", "FLUSHALL")
    assert page(rig) == []
    end_many(rig, 1)
    [sheet] = rig.node.endings.newest(rig.node.endings.end)
    assert sheet.first == 4


def filled(limit: int) -> Rig:
    """A node that remembers so many, and whose jobs take nearly all below level 1."""
    rig = Rig(config=Config(maxmemory=4 << 20, trace_sample=0, ended_jobs=limit))
    end_many(rig, 600)
    pressure.review(rig.node)
    weight = rig.node.endings.weight
    assert pressure.used(rig.node) >= rig.node.memory.held + weight
    assert bool(weight) == bool(limit)
    while rig.node.memory.held < rig.node.memory.soft - 20_000:
        rig.add(body="b" * 5_000)
    pressure.review(rig.node)
    return rig


@pytest.mark.slow
def test_they_take_what_jobs_leave_and_change_no_level() -> None:
    with_them, without = filled(1000), filled(0)

    assert with_them.node.endings.weight <= 20_000
    assert with_them.node.memory.soft == without.node.memory.soft
    assert with_them.node.memory.hard == without.node.memory.hard
    assert len(with_them.node.jobs) == len(without.node.jobs)
    assert pressure.level(with_them.node) == pressure.level(without.node)


def test_rows_without_records_go_too_when_memory_is_short() -> None:
    kept = Endings(1000)
    rig = Rig()
    job = rig.add()
    assert kept.rows is not None
    kept.rows += [(job, Cause.ACKJOB, b"", 1)] * 100

    kept.fit(10 * endings.ROW_BYTES)

    assert kept.count == 10
    assert [sheet.first for sheet in kept.newest(kept.end)] == [91]
