import pytest

from disque_trio.statemachine.base import ACTIVE, NULL_ARRAY, Failure, Reply, Status
from disque_trio.statemachine.commands.scans import phase_of
from disque_trio.statemachine.knobs import Knobs
from disque_trio.statemachine.lengthy import whole
from disque_trio.statemachine.messages import YourJobs
from tests.rig import CALM, JOB, N2, Rig, copy_of
from tests.statemachine.commands.refused import Refused

SYNTAX = Refused(b"ERR syntax error")
BAD_CURSOR = Refused(b"ERR invalid cursor or option name")
NOT_AN_INTEGER = Refused(b"ERR value is not an integer or out of range")


def page(rig: Rig, *words: bytes | str | int) -> tuple[bytes, list[Reply]]:
    """The next cursor and the items."""
    reply = whole(rig.ask(*words))
    assert isinstance(reply, list)
    cursor, items = reply
    assert isinstance(cursor, bytes)
    assert isinstance(items, list)
    return cursor, items


def everything(rig: Rig, name: str, *words: bytes | str | int) -> list[Reply]:
    """All pages, one after the other."""
    cursor, found = page(rig, name, 0, *words)
    while cursor != b"0":
        cursor, items = page(rig, name, cursor, *words)
        found += items
    return found


def rig_with_queues(count: int) -> Rig:
    rig = Rig()
    for number in range(count):
        rig.add(queue=f"q{number}")
    return rig


def names(count: int) -> list[bytes]:
    return [b"q%d" % number for number in range(count)]


# Iterations.


def test_an_empty_server_has_nothing_to_go_through() -> None:
    assert Rig().ask("QSCAN") == [b"0", []]
    assert Rig().ask("JSCAN") == [b"0", []]


def test_a_hundred_items_make_a_page() -> None:
    rig = rig_with_queues(250)

    cursor, first = page(rig, "QSCAN")
    assert (cursor != b"0", first) == (True, names(100))
    cursor, second = page(rig, "QSCAN", cursor)
    assert second == names(200)[100:]
    assert page(rig, "QSCAN", cursor) == (b"0", names(250)[200:])


def test_count_makes_other_pages() -> None:
    rig = rig_with_queues(5)

    cursor, items = page(rig, "QSCAN", "COUNT", 2)
    assert items == names(2)
    assert page(rig, "QSCAN", cursor, "COUNT", 3) == (b"0", names(5)[2:])
    assert len(page(rig, "QSCAN", "COUNT", 0)[1]) == 1


@pytest.mark.parametrize("words", [["BUSYLOOP"], ["COUNT", "-1"], ["busyloop", "count", "1"]])
def test_all_can_be_had_at_once(words: list[str]) -> None:
    rig = rig_with_queues(150)

    assert page(rig, "QSCAN", *words) == (b"0", names(150))


@pytest.mark.parametrize("words", [["BUSYLOOP"], ["COUNT", "-1"]])
def test_however_few_a_page_may_pass(words: list[str]) -> None:
    rig = rig_with_queues(20)
    rig.node.knobs = Knobs(scan_steps=3)

    assert page(rig, "QSCAN", *words) == (b"0", names(20))
    assert len(page(rig, "JSCAN", *words)[1]) == 20
    assert len(page(rig, "JSCAN")[1]) == 3


def test_a_page_looks_at_ten_names_for_each_item_it_wants() -> None:
    rig = rig_with_queues(50)
    rig.add(queue="q49")

    cursor, items = page(rig, "QSCAN", "COUNT", 2, "MINLEN", 2)

    assert (cursor != b"0", items) == (True, [])
    assert everything(rig, "QSCAN", "COUNT", 2, "MINLEN", 2) == [b"q49"]


def test_what_is_there_all_the_time_comes_once_and_what_goes_is_left_out() -> None:
    rig = rig_with_queues(20)
    jobs = list(rig.node.jobs)
    cursor, found = page(rig, "JSCAN", "COUNT", 5)
    rig.ask("DELJOB", jobs[0], jobs[10])
    newcomer = rig.add().id

    while cursor != b"0":
        cursor, items = page(rig, "JSCAN", cursor, "COUNT", 5)
        found += items

    assert found == [Status(each) for each in jobs if each != jobs[10]]
    assert Status(newcomer) not in found


def test_a_cursor_that_is_not_known_begins_anew() -> None:
    rig = rig_with_queues(3)

    for cursor in ("", 7, -1, (1 << 64) - 1, 1 << 50):
        assert page(rig, "QSCAN", cursor) == (b"0", names(3))


def test_a_cursor_of_one_scan_is_not_known_to_the_other() -> None:
    rig = rig_with_queues(20)
    cursor, _ = page(rig, "QSCAN", "COUNT", 10)

    assert len(page(rig, "JSCAN", cursor, "BUSYLOOP")[1]) == 20
    assert page(rig, "QSCAN", cursor, "BUSYLOOP") == (b"0", names(20)[10:])


def test_a_cursor_beyond_the_end_is_the_end() -> None:
    rig = rig_with_queues(20)
    cursor, _ = page(rig, "QSCAN", "COUNT", 10)

    assert page(rig, "QSCAN", int(cursor) + 1000) == (b"0", [])


def test_the_latest_iterations_are_remembered_and_no_more() -> None:
    rig = rig_with_queues(3)
    cursors = [page(rig, "QSCAN", "COUNT", 1)[0] for _ in range(40)]

    assert len(rig.node.scans) == 32
    assert page(rig, "QSCAN", cursors[0])[1] == names(3)
    assert page(rig, "QSCAN", cursors[-1])[1] == names(3)[1:]
    assert len(rig.node.scans) == 31


def test_of_walks_over_the_jobs_the_latest_are_remembered_and_none_goes_back() -> None:
    rig = rig_with_queues(30)
    jobs = [Status(job) for job in rig.node.jobs]
    cursors = [page(rig, "JSCAN", "COUNT", 10)[0] for _ in range(40)]

    assert len(rig.node.job_scans) == 32
    assert page(rig, "JSCAN", cursors[0], "COUNT", 10)[1] == jobs[:10], "it begins anew"
    assert page(rig, "JSCAN", cursors[-1], "COUNT", 10)[1] == jobs[10:20]
    assert page(rig, "JSCAN", cursors[-1], "COUNT", 10)[1] == jobs[:10], "it has gone on since"


@pytest.mark.parametrize("name", ["QSCAN", "JSCAN"])
def test_an_iteration_in_use_finishes_however_many_others_begin_meanwhile(name: str) -> None:
    rig = rig_with_queues(100)
    cursor, found = page(rig, name, "COUNT", 20)

    for _ in range(4):
        for _ in range(31):
            page(rig, name, "COUNT", 1)
        cursor, items = page(rig, name, cursor, "COUNT", 20)
        found += items

    assert cursor == b"0"
    assert found == (names(100) if name == "QSCAN" else [Status(job) for job in rig.node.jobs])


@pytest.mark.parametrize("count", [6, 32])
@pytest.mark.parametrize("name", ["QSCAN", "JSCAN"])
def test_clients_that_scan_in_turns_all_come_to_the_end(name: str, count: int) -> None:
    rig = rig_with_queues(100)
    cursors = [b"0"] * count
    found: list[list[Reply]] = [[] for _ in range(count)]

    for _ in range(5):
        for client in range(count):
            cursors[client], items = page(rig, name, cursors[client], "COUNT", 20)
            found[client] += items

    whole = names(100) if name == "QSCAN" else [Status(job) for job in rig.node.jobs]
    assert cursors == [b"0"] * count
    assert found == [whole] * count


def test_an_iteration_ends_when_the_rest_of_the_jobs_has_gone() -> None:
    rig = rig_with_queues(20)
    cursor, _ = page(rig, "JSCAN", "COUNT", 5)

    rig.ask("DEBUG", "FLUSHALL")

    assert page(rig, "JSCAN", cursor) == (b"0", [])
    assert not rig.node.job_scans


def test_iterations_are_numbered_from_one_again_before_cursors_outgrow_integers() -> None:
    rig = rig_with_queues(3)
    rig.node.last_scan = (1 << 23) - 2

    last, first = (page(rig, "QSCAN", "COUNT", 1)[0] for _ in range(2))

    assert int(first) < int(last) < 1 << 63
    assert page(rig, "QSCAN", last)[1] == page(rig, "QSCAN", first)[1] == names(3)[1:]


# Words.


def test_words_come_in_any_order_and_case() -> None:
    rig = rig_with_queues(3)

    assert page(rig, "QSCAN", "count", 9, "MinLen", 1, 0, "maxlen", 1) == (b"0", names(3))


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ("QSCAN 0 0", SYNTAX),
        ("QSCAN x", BAD_CURSOR),
        ("QSCAN COUNT", BAD_CURSOR),
        ("QSCAN QUEUE q", BAD_CURSOR),
        ("QSCAN 18446744073709551616", BAD_CURSOR),
        ("JSCAN MINLEN 5", BAD_CURSOR),
        ("JSCAN 0 COUNT", SYNTAX),
        ("QSCAN COUNT x", NOT_AN_INTEGER),
        ("QSCAN MINLEN x", NOT_AN_INTEGER),
        ("QSCAN MAXLEN x", NOT_AN_INTEGER),
        ("QSCAN IMPORTRATE x", NOT_AN_INTEGER),
        ("JSCAN STATE asleep", Refused(b"ERR Invalid job state name")),
        ("JSCAN REPLY some", Refused(b"ERR Invalid REPLY type, try ID or ALL")),
    ],
)
def test_other_words_are_errors(words: str, reply: Failure) -> None:
    assert Rig().ask(*words.split()) == reply


# Filters of queues.


def test_queues_by_length() -> None:
    rig = Rig()
    for length in range(4):
        rig.request("GETJOB", "NOHANG", "FROM", f"q{length}")
        for _ in range(length):
            rig.add(queue=f"q{length}")

    assert everything(rig, "QSCAN", "MINLEN", 2) == [b"q2", b"q3"]
    assert everything(rig, "QSCAN", "MAXLEN", 1) == [b"q0", b"q1"]
    assert everything(rig, "QSCAN", "MAXLEN", 0) == [b"q0"]
    assert everything(rig, "QSCAN", "MINLEN", 1, "MAXLEN", 2) == [b"q1", b"q2"]


def test_queues_by_what_they_import() -> None:
    rig = Rig(peers=1, config=CALM)
    rig.add("REPLICATE", 1, queue="own")
    rig.message(N2, YourJobs((copy_of(),)))

    assert everything(rig, "QSCAN", "IMPORTRATE", 20) == [b"q"]
    assert everything(rig, "QSCAN", "IMPORTRATE", 21) == []
    assert everything(rig, "QSCAN", "IMPORTRATE", 0) == [b"own", b"q"]


# Filters of jobs.


def test_jobs_by_queue_and_state() -> None:
    rig = Rig(peers=1, config=CALM)
    queued, other = rig.add("REPLICATE", 1), rig.add("REPLICATE", 1, queue="r")
    active = rig.add("REPLICATE", 1, "DELAY", 10)
    rig.hold(copy_of())
    rig.ask("ACKJOB", JOB)

    assert everything(rig, "JSCAN", "QUEUE", "r") == [Status(other.id)]
    assert everything(rig, "JSCAN", "STATE", "QUEUED") == [Status(queued.id), Status(other.id)]
    assert everything(rig, "JSCAN", "STATE", "active", "STATE", "acked") == [
        Status(active.id),
        Status(JOB),
    ]
    assert everything(rig, "JSCAN", "STATE", "wait-repl") == []
    assert everything(rig, "JSCAN", "STATE", "queued", "QUEUE", "r") == [Status(other.id)]


def test_jobs_that_wait_after_a_nack_can_be_listed() -> None:
    rig = Rig()
    waits, delayed, queued = rig.add(), rig.add("DELAY", 9), rig.add(queue="r")
    assert rig.ask("GETJOB", "FROM", "q") == [[b"q", waits.id, b"body"]]
    assert rig.ask("NACK", waits.id, "DELAY", 5) == 1

    assert everything(rig, "JSCAN", "STATE", "backing-off") == [Status(waits.id)]
    assert everything(rig, "JSCAN", "STATE", "Backing-Off", "STATE", "queued") == [
        Status(waits.id),
        Status(queued.id),
    ]
    assert everything(rig, "JSCAN", "STATE", "active") == [Status(waits.id), Status(delayed.id)]
    rig.ask("ACKJOB", waits.id)
    assert everything(rig, "JSCAN", "STATE", "backing-off") == []


def test_acks_without_a_job_are_not_shown() -> None:
    rig = Rig(peers=1)
    rig.ask("ACKJOB", JOB)

    assert everything(rig, "JSCAN") == []


def test_jobs_can_be_had_whole() -> None:
    rig = Rig()
    job = rig.add()
    shown = rig.ask("SHOW", job.id)

    assert everything(rig, "JSCAN", "REPLY", "all") == [shown]
    assert everything(rig, "JSCAN", "REPLY", "ID") == [Status(job.id)]


def test_each_queue_comes_with_its_figures() -> None:
    rig = Rig()
    job = rig.add(queue="q")
    rig.add(queue="other")
    rig.ask("GETJOB", "FROM", "other")
    rig.ask("PAUSE", "other", "in")

    found = everything(rig, "QSCAN", "REPLY", "stat")

    assert found == [
        *(b"q", b"1 0 1 0 0 0 0 %d none" % job.made),
        *(b"other", b"0 0 1 1 0 1 0 0 in"),
    ]
    assert len(page(rig, "QSCAN", "REPLY", "stat", "COUNT", 1)[1]) == 2
    assert everything(rig, "QSCAN", "REPLY", "name") == [b"q", b"other"]
    assert rig.ask("QSCAN", "REPLY", "all") == Refused(
        b"ERR Invalid REPLY type, try NAME or STAT: 'all' is neither"
    )


def test_a_queue_with_limits_has_them_behind_its_figures() -> None:
    rig = Rig()
    rig.ask("QUEUE", "LIMIT", "q", "CONCURRENCY", 1)
    of_group = "GROUP-CONCURRENCY", 2, "GROUP-RATE", 4, "BURST", 5
    rig.ask("QUEUE", "LIMIT", "idle", "RATE", 7, "PER", "0.5", "BURST", 3, "LOOSE", *of_group)
    rig.ask("QUEUE", "LIMIT", "removed", "RATE", 2)
    rig.ask("QUEUE", "LIMIT", "removed", "NONE")
    first = rig.add(queue="q")
    for _ in range(2):
        rig.request("GETJOB", "FROM", "q", client=rig.connect())
    job = rig.add(queue="q")
    assert first.state == ACTIVE

    assert everything(rig, "QSCAN", "UNQUEUED", "REPLY", "stat") == [
        *(b"q", b"1 1 2 1 0 1 0 %d none 1 0 0 0 1 0 0 0 1 0 0 0 0 0" % job.made),
        *(b"idle", b"0 0 0 0 0 0 0 0 none 0 0 0 0 0 7 500 3 0 1 2 4 1000 5"),
    ]
    assert everything(rig, "QSCAN", "REPLY", "stat") == [
        *(b"q", b"1 1 2 1 0 1 0 %d none" % job.made)
    ]
    assert rig.ask("QSTAT", "idle") == NULL_ARRAY
    assert rig.ask("QSTAT", "removed", "UNQUEUED") == NULL_ARRAY
    idle = rig.ask("QSTAT", "idle", "UNQUEUED")
    assert isinstance(idle, list)
    assert idle[-16:-8] == [b"period-ms", 500, b"burst", 3, b"limited", 0, b"loose", 1]
    assert idle[-8:] == [
        *(b"group-concurrency", 2, b"group-rate", 4, b"group-period-ms", 1000),
        *(b"group-burst", 5),
    ]


def found(rig: Rig, *words: bytes | str | int) -> list[bytes]:
    """The ids on the first page."""
    return [each.text for each in page(rig, "JSCAN", *words)[1] if isinstance(each, Status)]


def test_jobs_by_what_they_say() -> None:
    rig = Rig()
    first = rig.add("UNIQUE", "k", body="to: ada")
    second = rig.add("UNIQUE", "k", queue="other", body="to: eve")
    rig.ask("NACK", first.id, "DEAD", "ERROR", "KeyError: 'ada'\nmails.py:7")
    rig.ask("NACK", second.id, "DEAD", "ERROR", "KeyError")
    third = rig.add("GROUP", "acme", body="to: adam")

    assert found(rig, "GROUP", "acme") == [third.id]
    assert found(rig, "GROUP", "acm") == []
    assert found(rig, "KEY", "k") == [first.id, second.id]
    assert found(rig, "KEY", "k", "QUEUE", "other") == [second.id]
    assert found(rig, "KEY", "k", "QUEUE", "none") == []
    assert found(rig, "ERROR", "KeyError") == [first.id, second.id]
    assert found(rig, "ERROR", "KeyErr") == []
    assert found(rig, "BODY", "ada") == [first.id, third.id]
    assert found(rig, "BODY", "ada", "ERROR", "KeyError") == [first.id]


def test_jobs_by_age() -> None:
    rig = Rig()
    old = rig.add()
    rig.advance(5000)
    new = rig.add()

    assert found(rig, "OLDER", 5) == [old.id]
    assert found(rig, "OLDER", 6) == []
    assert found(rig, "YOUNGER", 4) == [new.id]
    assert found(rig, "YOUNGER", 5) == [old.id, new.id]


def test_jobs_by_the_phase_in_which_they_are() -> None:
    rig = Rig(peers=1, config=CALM)
    jobs = {
        b"": rig.hold(copy_of(JOB)),
        b"delayed": rig.add("REPLICATE", 1, "DELAY", 60),
        b"backing-off": rig.add("REPLICATE", 1, queue="a"),
        b"leased": rig.add("REPLICATE", 1, queue="b"),
    }
    rig.ask("GETJOB", "COUNT", 2, "FROM", "a", "b")
    rig.ask("NACK", jobs[b"backing-off"].id, "DELAY", 60)

    for phase, job in jobs.items():
        assert phase_of(job) == phase
        if phase:
            assert found(rig, "STATE", phase) == [job.id]
    assert found(rig, "STATE", "leased", "STATE", "queued") == [jobs[b"leased"].id]
    shown = page(rig, "JSCAN", "REPLY", "full")[1]
    assert [each[-2:] == [b"phase", phase] for each, phase in zip(shown, jobs, strict=True)] == [  # type: ignore[index]
        False, True, True, True,
    ]  # fmt: skip


def test_a_few_dead_jobs_are_found_at_once_among_many() -> None:
    rig = Rig()
    jobs = [rig.add(queue=name) for name in ("q", "other") for _ in range(30)]
    dead = jobs[25], jobs[55]
    for job in dead:
        rig.ask("NACK", job.id, "DEAD")

    assert page(rig, "JSCAN", "COUNT", 1, "STATE", "dead") == (
        b"0",
        [Status(job.id) for job in dead],
    )
    assert found(rig, "COUNT", 1, "STATE", "dead", "QUEUE", "other") == [dead[1].id]


@pytest.mark.parametrize("queues", [1, 30])
def test_many_dead_jobs_come_in_pages(queues: int) -> None:
    rig = Rig()
    for number in range(30):
        rig.ask("NACK", rig.add(queue=f"q{number % queues}").id, "DEAD")

    cursor, jobs = page(rig, "JSCAN", "COUNT", 2, "STATE", "dead")

    assert (cursor != b"0", len(jobs)) == (True, 2)
    assert len(everything(rig, "JSCAN", "COUNT", 2, "STATE", "dead")) == 30


def test_a_page_searches_so_much_of_bodies() -> None:
    rig = Rig()
    for _ in range(30):
        rig.add(body="x" * 20_000)

    cursor, jobs = page(rig, "JSCAN", "COUNT", 2, "BODY", "y")

    assert (cursor != b"0", jobs) == (True, [])
    assert int(cursor) & 0xFFFF == 4
