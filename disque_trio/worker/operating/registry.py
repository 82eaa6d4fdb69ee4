"""The worker's side: it publishes a heartbeat every ten seconds, and carries out orders.

A new heartbeat replaces the previous one, which is deleted at its node. The heartbeat of a killed
worker expires. An order is delivered at most once.
"""

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs

from disque_trio.client import commands
from disque_trio.client.client import Client
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.worker.codec import BAD_INPUT, write
from disque_trio.worker.driver import Worker
from disque_trio.worker.operating.notes import (
    ANSWERS,
    CONTROL,
    EVERY_S,
    NOTE_TTL_S,
    ORDER_TTL_S,
    WORKERS,
    Answer,
    Due,
    Note,
    Order,
    read_order,
)
from disque_trio.worker.runtime import runtime
from disque_trio.worker.stacks import stacks

if TYPE_CHECKING:
    from disque_trio.worker.cron.schedule import Schedule

WAIT_S: Final = 30.0
"""How long a GETJOB for orders waits, in seconds."""
PAUSE_S: Final = 5.0
"""The pause if no node has answered."""
GRACE_S: Final = 1.0
MOST_STACKS: Final = 65_536
MOST_SCHEDULES: Final = 200
"""The maximum number of schedules in a heartbeat."""
MOST_TASKS: Final = 500
"""The maximum number of tasks in a heartbeat."""
_log: Final = logging.getLogger("disque_trio.worker")


@attrs.define(eq=False, kw_only=True)
class Registrar:
    """Publishes the heartbeats of a worker, and passes orders to it, while `run` runs."""

    worker: Worker
    client: Client
    schedules: "Sequence[Schedule]" = ()
    """The declared schedules that it keeps."""
    added: "Callable[[], Sequence[Due]] | None" = None
    """Returns the schedules that it keeps of those added at run time."""
    attempts: Mapping[str, int] = attrs.Factory(dict)
    """By task: the number of attempts after which a job is dead."""
    every_s: float = EVERY_S
    ttl_s: int = NOTE_TTL_S
    draw: Callable[[], float] = random.random
    """Returns a random number from 0 to 1: heartbeats vary by up to a tenth of the interval."""
    _control: str = attrs.field(init=False)
    _noted: str = attrs.field(init=False, default="")
    """The id of the last heartbeat."""
    _changed: anyio.Event = attrs.field(init=False, factory=anyio.Event)

    def __attrs_post_init__(self) -> None:
        self._control = f"{CONTROL}{self.worker.name}.{runtime().new_key()}"

    async def run(self) -> None:
        """Run until cancelled, then delete the heartbeat."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._obey)
                await self._keep_note()
        finally:
            with anyio.move_on_after(GRACE_S, shield=True):
                await self._send(self._removal())

    # Notes.

    async def _keep_note(self) -> None:
        while True:
            self._changed = anyio.Event()
            note = write(self._note(), "json")
            # Not cancellable: a heartbeat without its id could not be deleted.
            with anyio.move_on_after(PAUSE_S, shield=True):
                added, *_ = await self._send([_once(WORKERS, note, self.ttl_s), *self._removal()])
                self._noted = added if isinstance(added, str) else self._noted
            with anyio.move_on_after(self.every_s * (0.9 + 0.2 * self.draw())):
                await self._changed.wait()

    def _note(self) -> Note:
        now = int(runtime().now())
        due = [
            Due(name=each.name, when=each.ticks.words, next=tick)
            for each in self.schedules[:MOST_SCHEDULES]
            for tick in islice(each.ticks.after(now), 1)
        ]
        due += [] if self.added is None else self.added()
        return Note(
            control=self._control,
            report=self.worker.report(),
            schedules=due[:MOST_SCHEDULES],
            attempts=dict(islice(self.attempts.items(), MOST_TASKS)),
        )

    def _removal(self) -> list[Command[Any]]:
        return [commands.fastack(self._noted)] if self._noted else []

    async def _send(self, asked: Sequence[Command[Any]]) -> list[Any]:
        """The results of the commands; if nodes do not answer, errors instead."""
        try:
            return await self.client.run_all(asked)
        except DisqueError as error:
            _log.debug("cannot report the state of the worker: %s", error)
            return [error] * max(len(asked), 1)

    # Orders.

    async def _obey(self) -> None:
        while True:
            try:
                for job in await self.client.getjob(self._control, timeout=WAIT_S):
                    await self.client.ackjob(job)
                    await self._carry_out(read_order(job.body))
            except BAD_INPUT as error:
                _log.warning("cannot decode an operation: %s", error)
            except DisqueError as error:
                _log.debug("cannot receive operations: %s", error)
                await anyio.sleep(PAUSE_S)

    async def _carry_out(self, order: Order) -> None:
        _log.warning("received the operation %s", order.order)
        if order.order == "quiet":
            self.worker.quiet()
        elif order.order == "resume":
            self.worker.resume()
        dump = stacks()[:MOST_STACKS] if order.order == "dump" else ""
        answer = write(Answer(report=self.worker.report(), stacks=dump), "json")
        if order.reply_to.startswith(ANSWERS):
            await self._send([_once(order.reply_to, answer, ORDER_TTL_S)])
        if order.order == "stop":  # the worker ends soon, and cancels this task
            self.worker.drain()
        self._changed.set()


def _once(queue: str, body: bytes, ttl_s: int) -> Command[str]:
    """The ADDJOB of a job that is delivered at most once, and has one replica."""
    return commands.addjob(queue, body, replicate=1, retry=0, ttl=ttl_s)
