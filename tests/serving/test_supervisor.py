"""The supervisor of workers, with processes in their place that do as the test needs."""

import os
import signal
import sys
from collections.abc import Iterator

import pytest
import trio

from disque_trio.serving.logs import open_log
from disque_trio.serving.processes.plan import Order, orders
from disque_trio.serving.processes.supervisor import Crew
from disque_trio.statemachine.config import Config

STUBBORN = """
import os, signal, sys
asked = []
def ask(*_):
    asked.append(1)
    if len(asked) == 2:
        os._exit(0)
    os.write(int(sys.argv[1]), b"STOPPING=1")
signal.signal(signal.SIGTERM, ask)
os.write(int(sys.argv[1]), b"READY=1")
while True:
    signal.pause()
"""
"""A worker that writes its journal anew at the first SIGTERM, and leaves that at the second."""


class Stubborn(Crew):
    """A crew of such workers."""

    async def _process(self, order: Order, line: int) -> trio.Process:  # noqa: ARG002
        return await trio.lowlevel.open_process(
            [sys.executable, "-c", STUBBORN, str(line)], pass_fds=[line], process_group=0
        )


@pytest.fixture
def signals() -> Iterator[None]:
    """Restore the signal handlers that the supervisor sets."""
    heeded = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(each) for each in heeded]
    yield
    for number, handler in zip(heeded, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
async def test_a_second_sigterm_reaches_the_workers() -> None:
    config = Config(workers=2, port=7000, logfile=os.devnull)
    crew = Stubborn(orders(config), os.getcwd(), open_log(config), None)

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crew.run)
            while not all(worker.is_ready for worker in crew._workers):
                await trio.sleep(0.01)
            os.kill(os.getpid(), signal.SIGTERM)
            while not all(worker.was_signalled for worker in crew._workers):
                await trio.sleep(0.01)
            os.kill(os.getpid(), signal.SIGTERM)

    assert crew.status == 0
