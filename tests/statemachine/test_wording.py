import re

import attrs
import pytest

from disque_trio.statemachine.key_facts import HELD, KeyFact
from disque_trio.statemachine.messages import (
    ALL_MESSAGES,
    AckHolders,
    DelJob,
    Enqueue,
    Fail,
    Gossip,
    GotAck,
    GotJob,
    HaveJobs,
    Holders,
    JobCopy,
    KeyAnswer,
    KeyCancel,
    KeyClaim,
    Meet,
    Message,
    NeedJobs,
    Pause,
    Ping,
    Pong,
    Postponed,
    Purge,
    Queued,
    QueueLimit,
    ReplJob,
    SetAck,
    Suspect,
    Waiting,
    WillQueue,
    Working,
    YourJobs,
    name_of,
)
from disque_trio.statemachine.wording import Wording, names_in, wording
from tests.trees import HOME

ONE, TWO, UNKNOWN = b"1" * 40, b"2" * 40, b"3" * 40
NAMES = {ONE: "n1", TWO: "n2"}
JOB = b"D-11111111-222222222222222222222222-05a1"
ID = JOB.decode()
COPY = JobCopy(JOB, 1, 0, 0, 2, 60, 1, 0, 1, 0, 0, b"mail", b"body", (ONE, TWO, UNKNOWN))
OTHER = attrs.evolve(COPY, id=b"other", holders=(TWO,))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (Ping((Gossip(TWO, b"", 1, 0), Gossip(ONE, b"", 1, 0))), Wording("ping", detail="n2,n1")),
        (Ping((Gossip(UNKNOWN, b"", 1, 0),)), Wording("ping", detail="?")),
        (Pong(), Wording("pong")),
        (Meet(), Wording("meet")),
        (Fail(TWO), Wording("fail", detail="n2")),
        (Suspect(TWO), Wording("suspect", detail="n2")),
        (Suspect(TWO, is_vote=True), Wording("suspect", detail="n2 vote")),
        (
            QueueLimit(b"mail", 1, 20, 100, 1000, 5, 0),
            Wording("queuelimit", "", "mail", "concurrency=20 rate=100/1000 burst=5"),
        ),
        (
            QueueLimit(b"mail", 1, 20, 0, 0, 0, 1),
            Wording("queuelimit", "", "mail", "concurrency=20 rate=0/0 burst=0 loose"),
        ),
        (
            QueueLimit(b"mail", 1, 20, 0, 0, 0, 0, 2, 5, 1000, 3),
            Wording(
                "queuelimit",
                "",
                "mail",
                "concurrency=20 rate=0/0 burst=0 "
                "group-concurrency=2 group-rate=5/1000 group-burst=3",
            ),
        ),
        (ReplJob((COPY,)), Wording("repljob", ID, "mail", f"jobs={ID} holders=n1,n2,?")),
        (
            ReplJob((COPY,), no_reply=True),
            Wording("repljob", ID, "mail", f"jobs={ID} holders=n1,n2,? no-reply"),
        ),
        (YourJobs((COPY,)), Wording("yourjobs", ID, "mail", f"jobs={ID} holders=n1,n2,?")),
        (
            YourJobs((COPY, OTHER)),
            Wording("yourjobs", "", "mail", f"jobs={ID},other holders=n1,n2,?;n2"),
        ),
        (GotJob(JOB), Wording("gotjob", ID)),
        (Enqueue(JOB, 3), Wording("enqueue", ID, detail="delay=3")),
        (Queued(JOB), Wording("queued", ID)),
        (Queued(JOB, nack=True), Wording("queued", ID, detail="nack")),
        (Queued(JOB, redelivery=True), Wording("queued", ID, detail="redelivery")),
        (SetAck(JOB, 2), Wording("setack", ID, detail="holders=2")),
        (WillQueue(JOB), Wording("willqueue", ID)),
        (GotAck(JOB, known=True), Wording("gotack", ID, detail="known")),
        (GotAck(JOB, known=False), Wording("gotack", ID, detail="unknown")),
        (DelJob(JOB), Wording("deljob", ID)),
        (Working(JOB), Wording("working", ID)),
        (NeedJobs(b"mail", 5), Wording("needjobs", queue="mail", detail="count=5")),
        (
            NeedJobs(b"mail", 5, waits=True),
            Wording("needjobs", queue="mail", detail="count=5 waits"),
        ),
        (Waiting(b"mail", 2), Wording("waiting", queue="mail", detail="count=2")),
        (HaveJobs(b"mail", 7), Wording("havejobs", queue="mail", detail="count=7")),
        (SetAck(JOB, 2, 5), Wording("setack", ID, detail="holders=2")),
        (AckHolders(JOB, (ONE, TWO)), Wording("ackholders", ID, detail="holders=n1,n2")),
        (Holders(JOB, (ONE, b"?")), Wording("holders", ID, detail="holders=n1,?")),
        (
            Postponed(JOB, 5000, 2, is_new=True),
            Wording("postponed", ID, detail="wait=5000 nacks=2 new"),
        ),
        (
            Postponed(JOB, 9, 0, snoozes=3, is_snooze=True),
            Wording("postponed", ID, detail="wait=9 nacks=0 snoozes=3 new"),
        ),
        (Postponed(JOB, 9, 2), Wording("postponed", ID, detail="wait=9 nacks=2")),
        (Purge(b"mail"), Wording("purge", queue="mail")),
        (
            KeyClaim(1, 2, JOB, 3, bytes(40), b"mail", b"k"),
            Wording("keyclaim", ID, "mail", "number=1/2 key=k"),
        ),
        (
            KeyAnswer(1, 2, (KeyFact(JOB, 3, HELD, 0, 0),)),
            Wording("keyanswer", detail=f"number=1/2 facts={ID}:2"),
        ),
        (KeyCancel(JOB, b"mail", b"k"), Wording("keycancel", ID, "mail", "key=k")),
        (Pause(b"mail", 3), Wording("pause", queue="mail", detail="bits=3")),
    ],
)  # fmt: skip
def test_a_row_says_what_the_message_does(message: Message, said: Wording) -> None:
    assert attrs.astuple(wording(message, NAMES)) == attrs.astuple(said)


def test_an_id_that_is_no_text_does_no_harm() -> None:
    assert wording(DelJob(b"\xff" * 40), NAMES).job == "\xff" * 40


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (ReplJob((COPY,)), [ONE, TWO, UNKNOWN]),
        (Holders(JOB, (TWO,)), [TWO]),
        (AckHolders(JOB, (TWO,)), [TWO]),
        (Fail(ONE), [ONE]),
        (SetAck(JOB, 2), []),
    ],
)
def test_without_a_run_nodes_have_the_beginnings_of_their_ids(
    message: Message, named: list[bytes]
) -> None:
    assert names_in(message) == {node: node[:8].decode() for node in named}


def test_the_page_of_the_bus_has_a_line_for_each_message_and_says_which_are_ours() -> None:
    page = (HOME / "docs" / "bus.md").read_text("utf-8")
    rows = re.findall(r"^\| ([A-Z]+)( \(ours\))? \|.*\|.*\|.*\|$", page, re.MULTILINE)
    told = {name.lower(): bool(ours) for name, ours in rows}

    assert told == {name_of(kind): bool(kind.NEEDS) for kind in ALL_MESSAGES}


def test_no_two_messages_have_one_number() -> None:
    numbers = [kind.NUMBER for kind in ALL_MESSAGES]

    assert len(set(numbers)) == len(numbers)
    assert min(numbers) == 0
