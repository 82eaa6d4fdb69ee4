"""The system refuses memory: a command that has changed nothing is answered OOM, and nothing is
left half done where the node goes on."""

import heapq

import pytest

from disque_trio.statemachine import lifecycle
from disque_trio.statemachine.base import Failure, Status
from disque_trio.statemachine.commands.table import BY_NAME
from disque_trio.statemachine.counts import OUT_OF_MEMORY
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.pressure import REFUSED, limited_by, refuse_memory
from tests.rig import Rig

JOBS = 5
"""One more, and the table of jobs grows."""
COMMANDS = (
    "ADDJOB q body 0 REPLICATE 1",
    "ADDJOB new body 0 REPLICATE 1",
    "ADDJOB q body 0 REPLICATE 1 DELAY 9 RETRY 7",
    "ADDJOB q body 0 REPLICATE 2 TTL 700",
    "ADDJOB q body 0 REPLICATE 1 UNIQUE key",
    "GETJOB COUNT 3 FROM q",
    "GETJOB FROM q",
    "ACKJOB ID",
    "FASTACK ID",
    "NACK ID DELAY 3",
    "RELEASE ID",
    "WORKING ID",
    "ENQUEUE ID",
    "DEQUEUE ID",
    "DELJOB ID",
)


def with_jobs() -> Rig:
    rig = Rig(peers=1)
    for number in range(JOBS):
        rig.add("REPLICATE", 1, body=str(number))
    rig.ask("GETJOB", "FROM", "q")
    return rig


def request(rig: Rig, command: str) -> list[bytes]:
    name = next(iter(rig.node.jobs)).decode()
    return command.replace("ID", name).encode().split()


def test_a_table_that_cannot_grow_refuses_a_job_and_the_node_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()
    rig.add()

    class Full(dict[bytes, object]):
        def __setitem__(self, key: bytes, value: object) -> None:
            raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(rig.node.table, "_by_id", Full(rig.node.jobs))
        assert rig.ask("ADDJOB", "q", "b", 0) == Failure(OUT_OF_MEMORY)

    check(rig.node)
    assert isinstance(rig.ask("ADDJOB", "q", "b", 0), Status)


def test_each_command_that_says_when_it_begins_says_so() -> None:
    for command in COMMANDS:
        rig = with_jobs()
        args = request(rig, command)
        row = BY_NAME[args[0].decode().lower()]

        rig.machine.request(rig.client, args, rig.now)

        assert row.marks_beginning
        assert rig.node.begun is args
        rig.take()
        assert rig.node.begun is None, "the body of the last request would stay in memory"


@pytest.mark.pure
def test_a_queue_without_a_timer_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()

    def fail(*_args: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(heapq, "heappush", fail)
        with pytest.raises(MemoryError):
            lifecycle.queue_for(rig.node, b"r")

    assert b"r" not in rig.node.queues
    check(rig.node)
    rig.add(queue="r")
    assert rig.node.queues[b"r"].slot is not None


def test_jobs_are_refused_while_the_system_refuses_memory() -> None:
    rig = Rig()
    job = rig.add()
    assert limited_by(rig.node) == "account"

    refuse_memory(rig.node, is_so=True)
    assert rig.ask("ADDJOB", "q", "b", 0) == REFUSED
    assert limited_by(rig.node) == "system"
    rig.advance(1000)
    assert rig.ask("ADDJOB", "q", "b", 0) == REFUSED
    assert rig.ask("GETJOB", "FROM", "q") == [[b"q", job.id, b"body"]]
    assert rig.ask("ACKJOB", job.id) == 1

    refuse_memory(rig.node, is_so=False)
    assert isinstance(rig.ask("ADDJOB", "q", "b", 0), Status)
