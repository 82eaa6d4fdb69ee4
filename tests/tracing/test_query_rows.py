import pytest

from disque_trio.statemachine.base import NULL_ARRAY, Failure, Reply, Status
from disque_trio.tracing.client_rows import Note
from disque_trio.tracing.query_rows import answered, invoked, lost

JOB = b"D-11111111-222222222222222222222222-05a1"
ID = b"1234567890123456789012345678901234567890"
SHOWN: list[Reply] = [
    b"id", JOB, b"queue", b"mail", b"state", b"queued", b"repl", 3, b"ttl", 60, b"ctime", 5,
    b"delay", 0, b"retry", 2, b"nodes-delivered", [ID, b"abcdefgh90"], b"body", b"hello",
]  # fmt: skip
TOLD = (
    "state=queued replicate=3 ttl=60 delay=0 retry=2000 body=907060870 "
    "failed=0 error= holders=12345678,abcdefgh queue=mail"
)


def test_what_the_whole_cluster_knows_is_no_query_of_a_node() -> None:
    words = [b"SHOW", b"KEY", b"mail", b"k"]

    assert (invoked(words), answered(words, [b"id", JOB])) == ([], [])


@pytest.mark.parametrize(
    ("words", "note"),
    [
        ([b"QLEN", b"mail"], Note("query.invoke", queue="mail", cause="qlen")),
        (
            [b"qpeek", b"mail", b"-3"],
            Note("query.invoke", queue="mail", cause="qpeek", detail="-3"),
        ),
        ([b"SHOW", JOB], Note("query.invoke", JOB.decode(), cause="show")),
        ([b"JSCAN", b"0", b"COUNT", b"2"], Note("query.invoke", cause="jscan", detail="0 COUNT 2")),
        ([b"INFO"], Note("query.invoke", cause="info")),
        ([b"QLEN", b"server"], Note("query.invoke", queue="server", cause="qlen")),
    ],
)
def test_a_query_says_what_it_is_about(words: list[bytes], note: Note) -> None:
    assert invoked(words) == [note]


def test_a_section_without_figures_of_jobs_is_no_query() -> None:
    assert invoked([b"INFO", b"server"]) == []


@pytest.mark.parametrize(
    ("command", "reply", "detail"),
    [
        (b"HELLO", [1, ID, []], "12345678"),
        (b"QLEN", 5, "5"),
        (b"QPEEK", [[b"mail", JOB, b"hello"]], f"{JOB.decode()}:907060870"),
        (
            b"QSTAT",
            [b"len", 1, b"jobs-in", 3, b"jobs-out", 2, b"dead", 4],
            "len=1 in=3 out=2 dead=4",
        ),
        (b"JSCAN", [b"7", [JOB]], f"7 {JOB.decode()}"),
        (b"JSCAN", [b"0", [[b"id", JOB, b"queue", b"q"]]], f"0 {JOB.decode()}"),
        (b"QSTAT", NULL_ARRAY, ""),
        (b"SHOW", None, ""),
        (
            b"SHOW",
            SHOWN,
            TOLD,
        ),
        (b"QSCAN", [b"7", [b"mail", b"news"]], "7 mail news"),
        (b"JSCAN", [b"0", [Status(JOB)]], f"0 {JOB.decode()}"),
        (
            b"INFO",
            b"# Jobs\r\nregistered_jobs:4\r\n\r\n# Queues\r\nregistered_queues:2\r\nhz:10\r\n",
            "registered_jobs=4 registered_queues=2",
        ),
    ],
)
def test_a_reply_is_told_in_short(command: bytes, reply: Reply, detail: str) -> None:
    (note,) = answered([command], reply)

    assert (note.kind, note.detail) == ("query.ok", detail)


def test_an_error_is_told_as_it_is() -> None:
    (note,) = answered([b"QLEN", b"mail"], Failure(b"LOADING the journal"))

    assert note == Note("query.refused", queue="mail", cause="qlen", detail="LOADING the journal")


def test_without_a_reply_nothing_is_known() -> None:
    assert lost([b"QLEN", b"mail"], "timeout") == [
        Note("query.unknown", queue="mail", cause="qlen", detail="timeout")
    ]


def test_other_commands_leave_no_rows() -> None:
    assert invoked([b"PING"]) == answered([b"PING"], Status(b"PONG")) == lost([b"PING"], "quit")
