import re

import pytest

from disque_trio.statemachine.base import NULL_ARRAY, Failure, Status
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.commandoptions import GETJOB, behind_from
from disque_trio.statemachine.commands.queues import GetOptions, parse_getjob
from disque_trio.statemachine.commands.table import BY_NAME
from disque_trio.statemachine.messages import Pause, YourJobs
from tests.rig import CALM, N2, N3, Rig, copy_of
from tests.statemachine.commands.refused import Refused
from tests.statemachine.counting import stat

SYNTAX = Refused(b"ERR syntax error")
COUNT = Refused(b"ERR COUNT must be a number greater than zero")
LEAVING = Refused(b"LEAVING This node is leaving the cluster, please connect to a different one")


# GETJOB.


def test_a_job_is_queue_id_and_body() -> None:
    rig = Rig()
    job = rig.add()

    assert rig.ask("GETJOB", "FROM", "q") == [[b"q", job.id, b"body"]]


def test_withcounters_shows_counters() -> None:
    rig = Rig()
    job = rig.add()
    job.nacks, job.deliveries = 2, 3

    assert rig.ask("GETJOB", "WITHCOUNTERS", "FROM", "q") == [
        [b"q", job.id, b"body", b"nacks", 2, b"additional-deliveries", 3]
    ]


def test_options_come_in_any_order_before_from_and_then_all_are_queues() -> None:
    words = b"getjob count 5 withcounters TIMEOUT 9 NOHANG from NOHANG FROM".split()

    assert parse_getjob(words) == GetOptions(
        (
            b"NOHANG",
            b"FROM",
        ),
        5,
        9,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("words", "queues", "expected"),
    [
        ("FROM q TIMEOUT 5000", "q", GetOptions(wait=5000)),
        ("FROM q nohang", "q", GetOptions(no_hang=True)),
        ("FROM a b COUNT 2 NoHang", "a b", GetOptions(count=2, no_hang=True)),
        ("COUNT 3 FROM q TIMEOUT 7", "q", GetOptions(count=3, wait=7)),
        ("FROM a NOHANG b", "a b", GetOptions(no_hang=True)),
        ("FROM q TIMEOUT", "TIMEOUT q", None),
        ("FROM COUNT COUNT 5", "COUNT", GetOptions(count=5)),
        ("FROM nohang NOHANG", "nohang", GetOptions(no_hang=True)),
        ("FROM NOHANG NOHANG TIMEOUT 9", "NOHANG", GetOptions(wait=9, no_hang=True)),
        ("FROM COUNT TIMEOUT mails", "COUNT TIMEOUT mails", GetOptions()),
        ("FROM TIMEOUT 100", "TIMEOUT 100", GetOptions()),
        ("FROM COUNT NOHANG mails TIMEOUT 5", "COUNT NOHANG mails", GetOptions(wait=5)),
        ("FROM mails COUNT letters", "mails COUNT letters", GetOptions()),
    ],
)
def test_options_behind_the_queues_are_options_and_queues_named_like_them_come_first(
    words: str, queues: str, expected: GetOptions | None
) -> None:
    asked = ["GETJOB", *words.split()]
    if expected is None:
        assert Rig().ask(*asked) == SYNTAX
        return
    expected.queues = tuple(queues.encode().split())

    assert parse_getjob([word.encode() for word in asked]) == expected


def test_a_client_that_names_queues_like_options_puts_them_first() -> None:
    assert behind_from([b"b", b"tied", b"a", b"COUNT"]) == [b"tied", b"COUNT", b"b", b"a"]


def test_every_option_of_getjob_is_known_as_a_word_that_a_queue_may_be_named_like() -> None:
    usage = re.findall(rb"[A-Z]{2,}", BY_NAME["getjob"].usage.encode())
    assert set(usage) == {*GETJOB, b"FROM"}


def test_options_behind_the_queues_work() -> None:
    rig = Rig()
    first, second = rig.add(), rig.add()

    assert rig.ask("GETJOB", "FROM", "q", "COUNT", 5, "NOHANG") == [
        [b"q", job.id, b"body"] for job in (first, second)
    ]
    assert rig.ask("GETJOB", "FROM", "q", "NOHANG") == NULL_ARRAY
    assert list(rig.node.queues) == [b"q"]


@pytest.mark.parametrize(
    "words",
    ["FROM q", "from q", "From q FROM", "from FROM q", "NOHANG COUNT 1 from other FROM q"],
)
def test_from_is_understood_in_any_case_and_names_are_not(words: str) -> None:
    rig = Rig()
    job = rig.add()

    assert rig.ask("GETJOB", *words.split()) == [[b"q", job.id, b"body"]]


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ("NOHANG", SYNTAX),
        ("FROM", SYNTAX),
        ("NOHANG FROM", SYNTAX),
        ("SOON FROM q", SYNTAX),
        ("COUNT", SYNTAX),
        ("NOHANG TIMEOUT", SYNTAX),
        ("COUNT 0 FROM q", COUNT),
        ("COUNT -1 FROM q", COUNT),
        ("COUNT FROM q", COUNT),
        ("TIMEOUT x FROM q", Refused(b"ERR timeout is not an integer or out of range")),
        ("TIMEOUT -1 FROM q", Refused(b"ERR timeout is negative")),
    ],
)
def test_anything_else_is_an_error_and_creates_nothing(words: str, reply: Failure) -> None:
    rig = Rig()

    assert rig.ask("GETJOB", *words.split()) == reply
    assert rig.node.queues == {}


def test_nothing_found_without_waiting_is_a_null_array_and_an_empty_queue() -> None:
    rig = Rig()

    assert rig.ask("GETJOB", "NOHANG", "FROM", "q") == NULL_ARRAY
    assert rig.ask("QLEN", "q") == 0
    assert b"q" in rig.node.queues


def test_a_leaving_node_serves_its_jobs_and_refuses_to_wait() -> None:
    rig = Rig(peers=1)
    job = rig.add("REPLICATE", 1)
    rig.ask("CLUSTER", "LEAVING", "yes")

    assert rig.ask("GETJOB", "FROM", "q") == [[b"q", job.id, b"body"]]
    assert rig.ask("GETJOB", "NOHANG", "FROM", "q") == NULL_ARRAY
    assert rig.ask("GETJOB", "FROM", "q") == LEAVING
    assert rig.client.blocked is Blocked.NO


def test_waiting_on_a_queue_paused_in_output_is_waiting() -> None:
    rig = Rig()
    rig.add()
    rig.ask("PAUSE", "q", "out")

    rig.request("GETJOB", "FROM", "q")

    assert rig.replies() == []
    assert rig.client.blocked is Blocked.JOBS


# QLEN and QPEEK.


def test_the_length_of_a_queue_and_of_none() -> None:
    rig = Rig()
    rig.add()
    rig.add()

    assert rig.ask("QLEN", "q") == 2
    assert rig.ask("QLEN", "nothing") == 0
    assert set(rig.node.queues) == {b"q"}


def test_peeking_shows_either_end() -> None:
    rig = Rig()
    ids = [rig.add(body=str(number)).id for number in range(3)]
    shown = [[b"q", job_id, b"%d" % number] for number, job_id in enumerate(ids)]

    assert rig.ask("QPEEK", "q", 2) == shown[:2]
    assert rig.ask("QPEEK", "q", -2) == shown[:0:-1]
    assert rig.ask("QPEEK", "q", 9) == shown
    assert rig.ask("QPEEK", "q", -(1 << 63)) == shown[::-1]


def test_peeking_at_nothing_is_an_empty_array() -> None:
    rig = Rig()
    rig.add()

    assert rig.ask("QPEEK", "q", 0) == []
    assert rig.ask("QPEEK", "nothing", 5) == []
    assert rig.ask("QPEEK", "nothing", "x") == Refused(
        b"ERR value is not an integer or out of range"
    )


def test_peeking_is_no_use_of_a_queue_and_minds_no_pause() -> None:
    rig = Rig()
    rig.add()
    rig.ask("PAUSE", "q", "all")
    rig.advance(5000)

    assert rig.ask("QPEEK", "q", 1) != []
    assert stat(rig)[b"idle"] == 5


# QSTAT.


def test_there_are_no_numbers_of_a_queue_that_does_not_exist() -> None:
    assert Rig().ask("QSTAT", "q") == NULL_ARRAY


def test_the_numbers_of_a_queue() -> None:
    rig = Rig()
    for _ in range(3):
        rig.add()
    rig.ask("GETJOB", "FROM", "q")
    rig.advance(10_000)
    job = rig.add()
    rig.ask("DEQUEUE", job.id)
    rig.advance(3_500)

    assert rig.ask("QSTAT", "q") == [
        b"name", b"q",
        b"len", 2,
        b"age", 13,
        b"idle", 3,
        b"blocked", 0,
        b"import-from", [],
        b"import-rate", 0,
        b"jobs-in", 4,
        b"jobs-out", 1,
        b"pause", b"none",
        b"delayed", 0,
        b"leased", 1,
        b"dead", 0,
        b"age-ms", 13_500,
        b"deliveries", 1,
        b"acks", 0,
        b"unqueued", 2,
        b"restored", 0,
        b"restored-due-ms", None,
        b"delayed-due-ms", None,
    ]  # fmt: skip


def test_a_queue_that_has_delayed_jobs_only_has_numbers_if_they_are_asked_for() -> None:
    rig = Rig()
    rig.ask("ADDJOB", "q", "b", 0, "DELAY", 60)

    assert rig.ask("QSTAT", "q") == NULL_ARRAY
    told = rig.ask("QSTAT", "q", "unqueued")

    assert isinstance(told, list)
    figures = dict(zip(told[::2], told[1::2], strict=True))
    wanted = {b"name": b"q", b"len": 0, b"delayed": 1, b"unqueued": 1, b"delayed-due-ms": 60_000}
    assert wanted.items() <= figures.items()
    assert rig.ask("QSTAT", "other", "UNQUEUED") == NULL_ARRAY


@pytest.mark.parametrize("words", [("UNQUEUD",), ("UNQUEUED", "UNQUEUED")])
def test_other_words_of_qstat_are_refused(words: tuple[str, ...]) -> None:
    answer = Rig().ask("QSTAT", "q", *words)

    assert isinstance(answer, Failure)
    assert answer.text.startswith(b"ERR syntax error")


def test_waiting_clients_and_givers_of_a_queue() -> None:
    rig = Rig(peers=2, config=CALM)
    rig.request("GETJOB", "FROM", "q", client=rig.connect())
    rig.request("GETJOB", "FROM", "q", client=rig.connect())
    assert stat(rig)[b"blocked"] == 2

    rig.message(N3, YourJobs((copy_of(),)))

    numbers = stat(rig)
    assert numbers[b"blocked"] == 1
    assert numbers[b"import-from"] == [N3]
    assert numbers[b"import-rate"] == 20
    assert (numbers[b"jobs-in"], numbers[b"jobs-out"]) == (1, 1)


def test_creation_counts_as_use_and_waiting_does_not() -> None:
    rig = Rig()
    rig.request("GETJOB", "FROM", "q", client=rig.connect())
    rig.advance(2_000)
    rig.request("GETJOB", "FROM", "q", client=rig.connect())
    rig.advance(2_000)

    assert (stat(rig)[b"age"], stat(rig)[b"idle"]) == (4, 4)


# PAUSE.


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("in", b"in"),
        ("OUT", b"out"),
        ("all", b"all"),
        ("in out", b"all"),
        ("in none", b"none"),
        ("in none out", b"out"),
        ("state", b"none"),
        ("none", b"none"),
    ],
)
def test_the_words_of_a_pause_add_up(words: str, state: bytes) -> None:
    rig = Rig()

    assert rig.ask("PAUSE", "q", *words.split()) == Status(state)
    assert (b"q" in rig.node.queues) == (state != b"none")
    if state != b"none":
        assert stat(rig)[b"pause"] == state


def test_a_pause_replaces_the_one_before_and_state_changes_nothing() -> None:
    rig = Rig()
    rig.ask("PAUSE", "q", "in")

    assert rig.ask("PAUSE", "q", "state") == Status(b"in")
    assert rig.ask("PAUSE", "q", "out") == Status(b"out")
    assert rig.ask("PAUSE", "q", "none") == Status(b"none")


def test_an_unknown_word_changes_nothing() -> None:
    rig = Rig()

    assert rig.ask("PAUSE", "q", "in", "sideways") == SYNTAX
    assert rig.node.queues == {}


def test_a_broadcast_tells_all_nodes_the_resulting_state() -> None:
    rig = Rig(peers=2)

    rig.ask("PAUSE", "q", "in", "BCAST", "out")
    assert rig.sent() == [(N2, Pause(b"q", 3)), (N3, Pause(b"q", 3))]

    rig.ask("PAUSE", "q", "bcast")
    assert rig.sent() == [(N2, Pause(b"q", 3)), (N3, Pause(b"q", 3))]

    rig.ask("PAUSE", "other", "state", "bcast")
    assert rig.sent() == [(N2, Pause(b"other", 0)), (N3, Pause(b"other", 0))]


def test_without_bcast_no_node_is_told() -> None:
    rig = Rig(peers=1)

    rig.ask("PAUSE", "q", "all")

    assert rig.sent() == []
