"""The system refuses memory: a command that has changed nothing is answered OOM, and nothing is
left half done where the node goes on."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from disque_trio.statemachine import lifecycle
from disque_trio.statemachine.base import Failure, Reply, Status
from disque_trio.statemachine.commands.table import BY_NAME
from disque_trio.statemachine.counts import OUT_OF_MEMORY
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.pressure import REFUSED, limited_by, refuse_memory
from tests.rig import Rig
from tests.statemachine.commands.test_bad_input import everything

pytestmark = pytest.mark.pure
"""In the compiled form some failures end the process at once, with a line of the compiler's own."""
_testcapi: Any = importlib.import_module("_testcapi")
MANY = 300
"""More allocations than a command needs."""
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


@contextmanager
def failing(number: int) -> Iterator[None]:
    """The allocation with this number fails, and no other."""
    _testcapi.set_nomemory(number, number + 1)
    try:
        yield
    finally:
        _testcapi.remove_mem_hooks()


def with_jobs() -> Rig:
    rig = Rig(peers=1)
    for number in range(JOBS):
        rig.add("REPLICATE", 1, body=str(number))
    rig.ask("GETJOB", "FROM", "q")
    return rig


def request(rig: Rig, command: str) -> list[bytes]:
    name = next(iter(rig.node.jobs)).decode()
    return command.replace("ID", name).encode().split()


def asked(rig: Rig, args: list[bytes], number: int) -> Reply | MemoryError:
    """The reply to this request, or the error that ends the node."""
    rig.machine.take()
    try:
        with failing(number):
            rig.machine.request(rig.client, args, rig.now)
    except MemoryError as error:
        return error
    replies = rig.machine.take().replies
    return replies[-1][1] if replies else None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("command", COMMANDS)
def test_wherever_memory_ends_the_state_is_whole_or_the_node_ends(command: str) -> None:
    refused = 0
    for number in range(MANY):
        rig = with_jobs()
        args = request(rig, command)
        *before, _ = everything(rig)

        reply = asked(rig, args, number)

        if reply == Failure(OUT_OF_MEMORY):
            refused += 1
            check(rig.node)
            *after, _ = everything(rig)
            assert after == before or b"new" in args, f"allocation {number}"
            assert len(rig.node.jobs) == JOBS
            rig.add("REPLICATE", 1)

    assert refused
    assert not isinstance(reply, MemoryError)


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

        assert row.says_when_it_begins
        assert rig.node.begun is not None
        assert rig.node.begun[0] == args[0]


def test_a_queue_without_a_timer_is_none() -> None:
    rig = Rig()
    for number in range(20):
        try:
            with failing(number):
                lifecycle.queue_for(rig.node, b"r")
        except MemoryError:
            assert b"r" not in rig.node.queues
            check(rig.node)
    assert b"r" in rig.node.queues


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
