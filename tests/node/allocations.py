"""Each allocation of a command fails in turn: what is answered OOM has left nothing half done.

`test_allocations` runs this.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from disque_trio.statemachine import lifecycle
from disque_trio.statemachine.base import Failure, Reply
from disque_trio.statemachine.counts import OUT_OF_MEMORY
from disque_trio.statemachine.invariants import check
from tests.rig import Rig
from tests.statemachine.commands.test_bad_input import everything
from tests.statemachine.test_out_of_memory import COMMANDS, JOBS, request, with_jobs

_testcapi: Any = importlib.import_module("_testcapi")
MANY = 300
"""More allocations than a command needs."""


@contextmanager
def failing(number: int) -> Iterator[None]:
    """The allocation with this number fails, and no other."""
    _testcapi.set_nomemory(number, number + 1)
    try:
        yield
    finally:
        _testcapi.remove_mem_hooks()


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


def test_a_queue_is_made_whole_or_not_at_all() -> None:
    rig = Rig()
    for number in range(20):
        try:
            with failing(number):
                lifecycle.queue_for(rig.node, b"r")
        except MemoryError:
            assert b"r" not in rig.node.queues
            check(rig.node)
    assert b"r" in rig.node.queues
