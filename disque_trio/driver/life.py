"""The life of a node: it loads its journal, serves until it is stopped, and shuts down."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from disque_trio.driver.nodes_writer import NodesWriter
from disque_trio.ports import EventLoop, Log
from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.machine import Machine
from disque_trio.storage.journal import Journal
from disque_trio.storage.stopping import keep_queues
from disque_trio.storage.tasks import Event, Scope, Tasks

HURRY_AFTER: Final[Millis] = 1000
"""A second request to stop hurries the end only after this time: a service manager and the
supervisor of workers may both ask at the same time."""
GRACE_S: Final = 2.0
"""How long a stopping node waits for clients to read their last replies."""
LOADING_GRACE_S: Final = 0.5
"""How long clients wait that connect while the journal is being loaded; after that they receive
LOADING."""


class Life:
    """The phase of a node's life."""

    def __init__(
        self,
        machine: Machine,
        tasks: Tasks,
        event_loop: EventLoop[Any, Any],
        journal: Journal | None,
        nodes: NodesWriter,
        log: Log,
    ) -> None:
        self.is_loading = False
        self.failure = ""
        """Why the node could not start; empty if it could."""
        self.is_ready = False
        """Has the node loaded its journal?"""
        self.shutdown: Shutdown | None = None
        """How the node ends, once it is stopping."""
        self.is_sealed = False
        """No more inputs are accepted: the journal has the final state of all jobs."""
        self.is_over = False
        """The node has ended: the event loop closes everything."""
        self._machine = machine
        self._tasks = tasks
        self._event_loop = event_loop
        self._journal = journal
        self._nodes = nodes
        self._log = log
        self._stopping = Event(tasks)
        self._stopped_at: Millis = 0
        self._loading = tasks.scope()
        self._hurry: Scope = tasks.scope()
        """The scope of work that a hurried stop skips."""

    async def live(
        self,
        load: Callable[[Journal], Awaitable[str]],
        has_work: Callable[[], bool],
        seal: Callable[[], None],
    ) -> None:
        """Run the node from start to end. `load` passes the journal's jobs to the machine, and
        returns an error text; `has_work` returns whether clients wait for output; `seal` carries
        out the last batch."""
        journal, tasks = self._journal, self._tasks
        if journal is not None:
            journal.start()
            if journal.must_load():
                self.is_loading = True
                tasks.start(self._answer_while_loading())
                with self._loading:
                    self.failure = await load(journal)
                self.is_loading = self._loading.is_cancelled or bool(self.failure)
        if not self.failure:
            self.is_ready = True
            if self.shutdown is None:
                self._event_loop.open_clients()
                self._event_loop.open_bus()
            await self._stopping.wait()
            if self.shutdown is not None and self.shutdown.graceful:
                await self._wind_up(self.shutdown, has_work, seal)
        self.is_over = True

    async def _answer_while_loading(self) -> None:
        await self._tasks.sleep(LOADING_GRACE_S)
        if not self.is_ready:
            self._event_loop.open_clients()

    def stop(self, shutdown: Shutdown, reason: str, now: Millis, clients: int) -> None:
        """Begin to stop. A second call, at least `HURRY_AFTER` later, hurries the end."""
        if self.shutdown is not None:
            if now >= self._stopped_at + HURRY_AFTER:
                self._hurry.cancel()
                self._tasks.awaken()
            return
        self.shutdown, self._stopped_at = shutdown, now
        self._log.notice("stopping", reason=reason, clients=clients)
        self._stopping.set()
        self._loading.cancel()
        self._tasks.awaken()

    async def _wind_up(
        self, shutdown: Shutdown, has_work: Callable[[], bool], seal: Callable[[], None]
    ) -> None:
        """Answer pending requests, within a grace period, and write the journal and nodes.conf."""
        journal = None if self.is_loading else self._journal
        tasks = self._tasks
        has_queues = False
        if journal is not None:
            has_queues = shutdown.rewrite_journal or await keep_queues(
                self._machine, journal, self._hurry, self._log
            )
        self._event_loop.stop_listening()
        with tasks.move_on_after(GRACE_S):
            while has_work() or self._event_loop.has_unsent():
                await tasks.sleep(0.01)
        if journal is not None:
            if has_queues:
                seal()
                self.is_sealed = True
            await journal.close(has_queues=has_queues)
        with tasks.move_on_after(GRACE_S):
            await self._nodes.finish()

    def end(self) -> None:
        """The node has ended, or its process was killed: drop all running work."""
        self.is_over = True
        if self._journal is not None:
            self._journal.abandon()
        self._tasks.end()
