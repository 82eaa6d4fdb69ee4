import math
from typing import Any, Literal

import pytest

from disque_trio.client import Command, Job, JobResult, KeyHolder, Meta, QueueStats, commands
from disque_trio.client.records import Scanned
from disque_trio.client.refusals import (
    BadReplyError,
    DeadJobError,
    DuplicateJobError,
    LeaseLostError,
    NotReplicatedError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
)
from disque_trio.statemachine import joboptions
from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply, Status

ID = "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
ROW: list[Reply] = [b"q", ID.encode(), b"body", b"nacks", 1, b"additional-deliveries", 2]


def words(command: Command[Any]) -> str:
    return b" ".join(command.words).decode()


def test_options_that_are_not_given_are_not_sent() -> None:
    assert words(commands.addjob("q", b"body")) == "ADDJOB q body 5000"


def test_all_options_of_addjob_are_sent() -> None:
    command = commands.addjob(
        "q", "b", timeout=1.5, replicate=3, delay=4, retry=0, ttl=60, maxlen=7, is_async=True
    )

    assert words(command) == "ADDJOB q b 1500 REPLICATE 3 DELAY 4 RETRY 0 TTL 60 MAXLEN 7 ASYNC"


@pytest.mark.parametrize("option", joboptions.OPTIONS, ids=lambda option: option.text)
def test_every_option_of_the_table_is_an_argument_of_addjob(option: joboptions.Option) -> None:
    value: Any = "return" if option.name == "if_exists" else "k" if option.is_text else 3
    given: dict[str, Any] = {option.name: value if option.usage else True}

    assert option.word in commands.addjob("q", "b", **given).words


def test_a_delay_with_decimals_has_an_option_beside_it_that_a_node_wants() -> None:
    assert words(commands.addjob("q", "b", delay=2.5)) == "ADDJOB q b 5000 DELAY 2.500 PRIORITY 0"
    command = commands.addjob("q", "b", delay=2.5, priority=7)
    assert words(command) == "ADDJOB q b 5000 DELAY 2.500 PRIORITY 7"


def test_getjob_waits_not_at_all_for_a_while_or_for_ever() -> None:
    assert "NOHANG" in words(commands.getjob("q", timeout=0))
    assert "TIMEOUT 1 COUNT 1 FROM q" in words(commands.getjob("q", timeout=0.0001))
    assert "TIMEOUT 0 COUNT 1 FROM a b" in words(commands.getjob("a", "b", timeout=None))
    assert commands.getjob("q", timeout=None).wait_s == math.inf


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_a_timeout_that_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="0 or more seconds"):
        commands.getjob("q", timeout=seconds)


def test_nothing_to_take_from_and_nothing_to_acknowledge_are_refused() -> None:
    with pytest.raises(ValueError, match="needs at least one queue"):
        commands.getjob()
    with pytest.raises(ValueError, match="ackjob needs at least one job"):
        commands.ackjob()


def test_jobs_come_with_their_counters() -> None:
    assert commands.getjob("q").result([ROW]) == [Job(ID, "q", b"body", 1, 2)]
    assert commands.qpeek("q", 1).result([ROW[:3]]) == [Job(ID, "q", b"body")]
    assert commands.getjob("q").result(NULL_ARRAY) == []


def test_a_name_that_is_not_utf8_comes_and_goes() -> None:
    (job,) = commands.getjob("q").result([[b"\xff", *ROW[1:]]])

    assert commands.qlen(job.queue).words == (b"QLEN", b"\xff")


SHOWN: list[Reply] = [
    b"id", ID.encode(), b"queue", b"q", b"state", b"active", b"repl", 2, b"ttl", 60, b"ctime", 9,
    b"delay", 1, b"retry", 5, b"nacks", 1, b"additional-deliveries", 2, b"nodes-delivered",
    [b"n1"], b"nodes-confirmed", [], b"next-requeue-within", 1500, b"next-awake-within", None,
    b"body", b"b", b"backing-off", 250, b"priority", 5,
]  # fmt: skip
STATS: list[Reply] = [
    b"name", b"q", b"len", 1, b"age", 2, b"idle", 3, b"blocked", 4, b"import-from", [b"n1"],
    b"import-rate", 5, b"jobs-in", 6, b"jobs-out", 7, b"pause", b"none",
]  # fmt: skip
OURS: list[Reply] = [
    b"delayed", 8, b"leased", 9, b"dead", 10, b"age-ms", 1100, b"deliveries", 12, b"acks", 13,
]  # fmt: skip


def test_a_job_is_shown_as_a_record() -> None:
    shown = commands.show(ID).result(SHOWN)

    assert shown is not None
    assert (shown.queue, shown.body, shown.state, shown.retry) == ("q", b"b", "active", 5)
    assert (shown.next_requeue_within, shown.next_awake_within) == (1.5, None)
    assert (shown.backing_off, shown.nodes_delivered, shown.more) == (
        0.25,
        ("n1",),
        {"priority": 5},
    )
    assert commands.show(ID).result(None) is None


def test_an_acknowledgement_without_its_job_is_shown_without_queue_and_body() -> None:
    row = [None if each in (b"q", b"b") else each for each in SHOWN]
    shown = commands.show(ID).result(row)

    assert shown is not None
    assert (shown.queue, shown.body) == (None, None)


def test_the_figures_of_a_queue_are_a_record_and_those_of_an_original_node_are_fewer() -> None:
    ours = commands.qstat("q").result(STATS + OURS)
    original = commands.qstat("q").result(STATS)

    assert ours == QueueStats(
        name="q", length=1, age=2, idle=3, blocked=4, import_from=("n1",), import_rate=5,
        jobs_in=6, jobs_out=7, pause="none",
        delayed=8, leased=9, dead=10, next_age=1.1, deliveries=12, acks=13,
    )  # fmt: skip
    assert original is not None
    assert (original.jobs_out, original.delayed, original.next_age) == (7, None, None)
    assert commands.qstat("q").result(NULL_ARRAY) is None


def test_queues_and_jobs_are_gone_through_a_page_at_a_time() -> None:
    queues = commands.qscan(7, count=10, minlen=1, maxlen=9, import_rate=2)
    jobs = commands.jscan(7, count=5, queue="q", states=["dead", "acked"])

    assert words(queues) == "QSCAN 7 COUNT 10 MINLEN 1 MAXLEN 9 IMPORTRATE 2"
    assert queues.result([b"12", [b"a", b"b"]]) == Scanned(12, ["a", "b"])
    assert words(jobs) == "JSCAN 7 COUNT 5 QUEUE q STATE dead STATE acked REPLY all"
    assert [each.id for each in jobs.result([b"0", [SHOWN]]).items] == [ID]


def test_info_is_told_by_field() -> None:
    told = commands.info("server").result(b"# Server\r\ndisque_version:1\r\na:b:c\r\n\r\n")

    assert told == {"disque_version": "1", "a": "b:c"}


def test_an_error_is_raised_by_its_code() -> None:
    with pytest.raises(NotReplicatedError, match="ADDJOB: NOREPL Not enough"):
        commands.addjob("q", "b").result(Failure(b"NOREPL Not enough"))
    with pytest.raises(UnavailableError):
        commands.ackjob(ID).result(Failure(b"LOADING wait"))
    with pytest.raises(RefusedError) as error:
        commands.call("NONSENSE").result(Failure(b"ERR \xff"))
    assert (error.value.code, error.value.command) == ("ERR", "NONSENSE")


@pytest.mark.parametrize(
    "reply", [7, b"text", [b"row"], [[b"q", b"id"]], [[b"q", b"id", 7]], [[1, 2, b"b"]]]
)
def test_a_reply_that_cannot_be_is_an_error_of_its_own(reply: object) -> None:
    with pytest.raises(BadReplyError, match="to GETJOB"):
        commands.getjob("q").result(reply)  # type: ignore[arg-type]


def test_what_must_not_be_sent_twice_says_so() -> None:
    assert not commands.addjob("q", "b").is_repeatable
    assert not commands.nack(ID).is_repeatable
    assert not commands.call("PING").is_repeatable
    assert commands.ackjob(ID).is_repeatable
    assert commands.pause("q", "in").result(Status(b"in")) == "in"


def test_limits_of_a_queue_are_set_and_removed() -> None:
    limit = commands.limit_queue("q", concurrency=20, rate=100, per=2.5, burst=5)

    assert b" ".join(limit.words) == b"QUEUE LIMIT q CONCURRENCY 20 RATE 100 PER 2.500 BURST 5"
    loose = commands.limit_queue("q", concurrency=2, is_loose=True)
    assert b" ".join(loose.words) == b"QUEUE LIMIT q CONCURRENCY 2 LOOSE"
    of_groups = commands.limit_queue("q", group_concurrency=2, group_rate=9, group_per=0.5)
    words = b"QUEUE LIMIT q GROUP-CONCURRENCY 2 GROUP-RATE 9 GROUP-PER 0.500"
    assert b" ".join(of_groups.words) == words
    assert commands.limit_queue("q").words == (b"QUEUE", b"LIMIT", b"q", b"NONE")
    assert limit.result(Status(b"OK")) == "OK"


def test_qstat_of_a_queue_with_limits() -> None:
    limits: list[Reply] = [
        b"concurrency",
        2,
        b"rate",
        7,
        b"period-ms",
        500,
        b"burst",
        3,
        b"limited",
        1,
    ]

    stats = commands.qstat("q").result([*STATS, *OURS, *limits])

    assert stats is not None
    assert (stats.concurrency, stats.rate, stats.rate_per, stats.burst) == (2, 7, 0.5, 3)
    assert stats.is_limited


def test_a_key_is_sent_with_its_options_and_allows_the_command_to_be_sent_again() -> None:
    command = commands.addjob("q", "b", unique="k", keep=1.5)

    assert words(command) == "ADDJOB q b 5000 UNIQUE k KEEP 1.500"
    assert command.is_repeatable
    assert commands.addjob("q", "b", unique="k", if_exists="return").is_repeatable
    ways: list[Literal["reject", "again", "replace"]] = ["reject", "again", "replace"]
    for way in ways:
        other = commands.addjob("q", "b", unique="k", if_exists=way)
        assert words(other).endswith(f"IFEXISTS {way}")
        assert not other.is_repeatable
    assert not commands.addjob("q", "b").is_repeatable


def test_priorities_and_waits_after_a_nack_are_sent_with_their_options() -> None:
    command = commands.addjob("q", "b", priority=-3, backoff=0.5, max_backoff=60)

    assert words(command) == "ADDJOB q b 5000 PRIORITY -3 BACKOFF 0.500 MAXBACKOFF 60"
    assert words(commands.nack(ID, delay=2.5)) == f"NACK {ID} DELAY 2.500"
    assert words(commands.nack(ID, delay=0)) == f"NACK {ID} DELAY 0"
    assert words(commands.release(ID, ID)) == f"RELEASE {ID} {ID}"
    assert commands.release(ID).result(1) == 1
    assert commands.release(ID).is_repeatable
    snooze = commands.release(DELIVERED, delay=2.5)
    assert words(snooze) == f"RELEASE {ID}@{TOKEN} DELAY 2.500"
    assert (snooze.result(1), snooze.is_repeatable, snooze.giver) == (1, False, TOKEN[:8])


def test_a_job_is_shown_and_cancelled_by_its_key() -> None:
    assert words(commands.show_key("q", "k")) == "SHOW KEY q k"
    row: list[Reply] = [b"id", ID.encode(), b"state", b"queued", b"nodes", [b"a", b"b"]]
    assert commands.show_key("q", "k").result([*row, b"queued-at", [b"a"]]) == KeyHolder(
        id=ID, state="queued", nodes=("a", "b"), queued_at=("a",)
    )
    assert commands.show_key("q", "k").result(None) is None
    local = commands.show_key("q", "k", is_local=True)
    assert local.words_for({"show-key-local"}) == (b"SHOW", b"KEY", b"q", b"k", b"LOCAL")
    assert local.words_for(()) == (b"SHOW", b"KEY", b"q", b"k")
    assert commands.cancel_key("q", b"\xff").words == (b"CANCEL", b"KEY", b"q", b"\xff")
    assert commands.cancel_key("q", "k").result(1) == 1


def test_dead_jobs_are_made_and_redriven() -> None:
    assert commands.addjob("q", "b", limit=3).words[-2:] == (b"LIMIT", b"3")
    buried = commands.nack(ID, dead="no such user")
    assert buried.words == (b"NACK", ID.encode(), b"DEAD", b"no such user")
    assert not buried.is_repeatable
    assert commands.redrive(ID).words == (b"REDRIVE", ID.encode())
    assert commands.redrive_queue("q").words == (b"REDRIVE", b"q")
    assert not commands.redrive(ID).is_repeatable
    some = commands.redrive_queue("q", 5)
    assert some.words == (b"REDRIVE", b"q", b"COUNT", b"5")
    assert (some.result(4), some.is_repeatable) == (4, False)


TOKEN = "0123456789abcdef0123"
DELIVERED = Job(
    ID, "q", b"b", meta=Meta(attempt=1, priority=0, age=0.0, lease=9.0, ttl=60.0, token=TOKEN)
)


def test_meta_and_ties_are_asked_of_nodes_that_know_them() -> None:
    command = commands.getjob("q", timeout=0, with_meta=True, is_tied=True)
    plain = b"GETJOB NOHANG WITHCOUNTERS COUNT 1 FROM q".split()

    assert b"WITHMETA" in command.words_for({"withmeta", "tied"})
    assert b"TIED" in command.words_for({"withmeta", "tied"})
    assert command.words_for({"withmeta"}) == command.words_for(()) == tuple(plain)


@pytest.mark.parametrize("make", [commands.working, commands.nack, commands.release])
def test_the_token_of_a_delivery_is_sent_to_nodes_that_know_tokens(make: Any) -> None:
    command = make(DELIVERED)

    assert command.words_for({"tokens", "release"})[1] == f"{ID}@{TOKEN}".encode()
    assert command.words_for(()) == (
        b"ENQUEUE" if command.name == "RELEASE" else command.words[0],
        ID.encode(),
    )
    assert make(f"{ID}@{TOKEN}").words == command.words
    assert make(ID).words == (command.words[0], ID.encode())


def test_jobs_are_held_only_with_a_tie_and_begin_with_their_tokens() -> None:
    command = commands.getjob("q", timeout=0, is_tied=True, is_held=True)
    assert b"HELD" in command.words_for({"tied", "held"})
    assert command.words_for({"tied"}) == command.plain
    with pytest.raises(ValueError, match="is_held needs is_tied"):
        commands.getjob("q", is_held=True)

    begin = commands.begin(DELIVERED, ID)
    assert words(begin) == f"BEGIN {ID}@{TOKEN} {ID}"
    assert begin.words_for({"tokens"}) == (b"ACKJOB",)
    assert begin.result(2) == 2


def test_other_commands_take_delivered_jobs_by_their_ids() -> None:
    assert commands.ackjob(DELIVERED, f"{ID}@{TOKEN}").words == (b"ACKJOB", *[ID.encode()] * 2)
    assert words(commands.nack(DELIVERED, ID, delay=1)) == f"NACK {ID}@{TOKEN} {ID} DELAY 1"


def test_several_jobs_are_worked_on_at_once_and_each_has_its_answer() -> None:
    command = commands.working_all(DELIVERED, ID)
    kept, lost = command.result([300, Failure(b"LOST gone")])

    assert words(command) == f"WORKING {ID}@{TOKEN} {ID}"
    assert (kept, type(lost)) == (300, LeaseLostError)
    assert commands.working_all(ID).result(300) == [300]
    (dead,) = commands.working_all(ID).result(Failure(b"DEAD it is"))
    assert isinstance(dead, DeadJobError)
    with pytest.raises(UnavailableError):
        commands.working_all(ID).result(Failure(b"LOADING wait"))


def test_the_end_of_a_job_is_one_of_three_or_none_in_time() -> None:
    command = commands.waitjob(DELIVERED, timeout=2)

    assert words(command) == f"WAITJOB {ID} TIMEOUT 2000"
    assert (command.wait_s, commands.waitjob(ID).wait_s) == (2, math.inf)
    assert [command.result(each) for each in (b"acked", b"dead", b"expired", None)] == [
        "acked", "dead", "expired", None,
    ]  # fmt: skip
    with pytest.raises(BadReplyError):
        command.result(b"gone")


def test_asking_whether_a_job_has_ended_waits_at_nodes_that_know_no_nohang() -> None:
    command = commands.waitjob(DELIVERED, timeout=0)

    assert words(command) == f"WAITJOB {ID} NOHANG"
    assert command.wait_s == 0
    assert command.words_for(()) == (b"WAITJOB", ID.encode(), b"TIMEOUT", b"1")


def test_a_result_goes_to_nodes_that_keep_results_and_is_of_one_job() -> None:
    command = commands.ackjob(DELIVERED, result="done", keep=1.5)

    assert words(command) == f"ACKJOB {ID} RESULT done KEEP 1.500"
    assert command.result(1) == 1
    assert words(commands.ackjob(ID, result=b"")) == f"ACKJOB {ID} RESULT "
    with pytest.raises(ValueError, match="needs exactly one job"):
        commands.ackjob(ID, ID, result="x")
    with pytest.raises(ValueError, match="needs exactly one job"):
        commands.ackjob(ID, keep=1)


def test_a_result_comes_with_the_end() -> None:
    command = commands.waitresult(DELIVERED, timeout=0)

    assert words(command) == f"WAITJOB {ID} NOHANG WITHRESULT"
    assert words(commands.waitresult(ID, timeout=2)) == f"WAITJOB {ID} TIMEOUT 2000 WITHRESULT"
    assert command.result([b"acked", b"x"]) == JobResult("acked", b"x")
    assert command.result([b"dead", None]) == JobResult("dead", None)
    assert command.result(None) is None


@pytest.mark.parametrize(
    "command", [commands.ackjob(ID, result="x"), commands.waitresult(ID)], ids=lambda c: c.name
)
def test_a_node_that_keeps_no_results_is_asked_nothing_and_that_is_an_error(
    command: Command[object],
) -> None:
    assert command.words_for(()) == (b"PING",)
    assert command.words_for(("results",)) == command.words
    with pytest.raises(UnsupportedError, match=f"{command.name}: the node does not keep results"):
        command.result(Status(b"PONG"))


def test_queues_are_purged_and_waits_ended() -> None:
    assert words(commands.purge("q")) == "PURGE q"
    assert words(commands.purge("q", is_dead=True, is_bcast=True)) == "PURGE q DEAD BCAST"
    assert not commands.purge("q").is_repeatable
    assert words(commands.unblock(9)) == "CLIENT UNBLOCK 9"


def test_a_duplicate_tells_the_job_that_has_the_key() -> None:
    with pytest.raises(DuplicateJobError) as error:
        commands.addjob("q", "b", unique="k").result(Failure(f"DUPLICATE {ID} queued".encode()))

    assert (error.value.job_id, error.value.state) == (ID, "queued")


def test_a_node_without_sync_waits_for_all_copies() -> None:
    command = commands.addjob("q", "b", replicate=3, sync=2)

    assert command.words_for({"sync"})[-2:] == (b"SYNC", b"2")
    assert command.words_for(()) == command.words[:-2]


def test_sync_auto_is_sent_to_nodes_that_know_it() -> None:
    command = commands.addjob("q", "b", sync="auto")

    assert command.words_for({"sync", "sync-auto"})[-2:] == (b"SYNC", b"auto")
    assert command.words_for({"sync"}) == command.words[:-2]
    keyed = commands.addjob("q", "b", sync="auto", unique="SYNC")
    assert keyed.words_for({"unique"})[-2:] == (b"UNIQUE", b"SYNC")
    with pytest.raises(ValueError, match="sync is 'all': it must be one of 'auto'"):
        commands.addjob("q", "b", sync="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["delay", "retry"])
def test_long_times_are_sent_beside_an_option_of_ours(option: Literal["delay", "retry"]) -> None:
    plain: dict[str, int] = {option: 2_147_483}
    long: dict[str, int] = {option: 2_147_484}

    assert b"PRIORITY" not in commands.addjob("q", "body", **plain).words  # type: ignore[arg-type]
    assert commands.addjob("q", "body", **long).words[-2:] == (b"PRIORITY", b"0")  # type: ignore[arg-type]
    assert b"0" not in commands.addjob("q", "body", priority=3, **long).words[-1:]  # type: ignore[arg-type]
