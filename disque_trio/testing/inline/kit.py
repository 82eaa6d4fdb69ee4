"""`Inline`, the value of the fixture `disque_inline`."""

import contextlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast

import anyio
import attrs

from disque_trio.statemachine.base import Millis
from disque_trio.testing.inline.clients import world_of
from disque_trio.testing.inline.jobs import Waiting, Wanted, missing, shown
from disque_trio.testing.inline.node import MemoryNode
from disque_trio.testing.inline.runs import Ran, Runner
from disque_trio.worker.app import App
from disque_trio.worker.cron.schedule import Schedule
from disque_trio.worker.enqueue import Call
from disque_trio.worker.options import RESERVED
from disque_trio.worker.runtime import for_process
from disque_trio.worker.task import Prepared
from disque_trio.worker.timetable.records import Entry

Result = TypeVar("Result")
AnyApp = App[Any]

MOST_RUNS: Final = 1000


class JobDiedError(AssertionError):
    """A job is dead, and the test does not allow that."""


class EndlessError(AssertionError):
    """Jobs run without end."""


@attrs.define(eq=False)
class Inline:
    """Apps add their jobs to a node in memory, and the test decides when they run."""

    node: MemoryNode = attrs.Factory(MemoryNode)

    # Jobs.

    def jobs(self, task: Prepared[..., Any] | None = None) -> list[Waiting]:
        """The waiting jobs, of this task or of all. Results and other jobs of the library are
        omitted."""
        found = [shown(self.node, job) for job in self.node.waiting()]
        found = [job for job in found if not job.queue.startswith(RESERVED)]
        if task is None:
            return found
        names = (task.definition.name, *task.definition.aliases)
        return [job for job in found if job.task in names]

    def dead(self) -> list[Waiting]:
        """The dead jobs."""
        return [shown(self.node, job) for job in self.node.dead()]

    def assert_enqueued(
        self,
        task: Prepared[..., Any],
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        queue: str | None = None,
        within: float | None = None,
        count: int | None = None,
    ) -> list[Waiting]:
        """Assert that such jobs wait: at least one, or exactly `count`; return them. `args` are all
        arguments, together with `kwargs`; `kwargs` alone are some of them. `within` is the number
        of seconds within which they are due. Raises `AssertionError`, which lists the existing jobs
        and the differences."""
        wanted = Wanted(task=task, args=args, kwargs=kwargs, queue=queue, within=within)
        jobs = self.jobs()
        found = [job for job in jobs if not wanted.misses(job)]
        if len(found) != count if count is not None else not found:
            raise AssertionError(missing(wanted, jobs, count, len(found)))
        return found

    # Time.

    @property
    def now(self) -> float:
        """Unix time. It passes only in `sleep`, `run_all` and `run_for`."""
        return self.node.wall()

    def sleep(self, seconds: float) -> None:
        """Let time pass without running anything."""
        self.node.sleep(seconds)

    # Runs.

    async def perform(
        self,
        task: Prepared[..., Result] | Call[Result],
        *args: Any,
        attempt: int = 1,
        interrupted: int = 0,
        **kwargs: Any,
    ) -> Result:
        """Run a job with these arguments that is in no queue, and return its result. `attempt` is
        the number of this attempt; `interrupted` is the number of earlier runs that ended without
        an outcome. Raises the error of the handler, with a note about the outcome of the job, and
        `JobDiedError` if the job is dead without one."""
        call = task if isinstance(task, Call) else task.call(*args, **kwargs)
        app = cast("AnyApp", call.enqueuer.app)
        async with Runner.of(app, self.node) as runner:
            ran = await runner.perform(call, attempt - 1, interrupted)
        if ran.error is not None:
            ran.error.add_note(f"disque_inline: {ran}")
            raise ran.error
        if ran.end == "dead":
            raise JobDiedError(str(ran))
        return cast("Result", ran.result)

    async def run_all(self, app: AnyApp, *, may_die: bool = False) -> list[Ran]:
        """Run the jobs of the app's queues, the jobs that they add, and those that are due later:
        the clock advances to each. Returns the runs, in order. Raises `JobDiedError` if a job dies,
        unless `may_die`, and `EndlessError` after 1000 runs."""
        async with Runner.of(app, self.node) as runner:
            ran = await self._run_due(runner, may_die)
            while (due := self._due(runner)) is not None:
                self.node.sleep((due - self.node.now.mono) / 1000)
                ran += await self._run_due(runner, may_die, len(ran))
        return ran

    async def run_for(self, app: AnyApp, seconds: float, *, may_die: bool = False) -> list[Ran]:
        """As `run_all`, for this time: jobs that are due later wait, and the ticks of cron and of
        schedules in this time are run. With 0 seconds it runs what is due now."""
        end = self.now + seconds
        async with Runner.of(app, self.node) as runner:
            keeper = app.schedules.keeper()
            ran = await self._run_due(runner, may_die)
            while (at := self._next(runner, entries := await keeper.entries())) <= end:
                self.node.sleep(max(at - self.now, 0))
                for schedule in app.crons.schedules:
                    if _tick(schedule, at - 1) == at:
                        await app.crons.add(schedule, int(at))
                for entry in entries:
                    if entry.next(at - 1) == at:
                        await keeper.add(entry, int(at))
                ran += await self._run_due(runner, may_die, len(ran))
            self.node.sleep(max(end - self.now, 0))
        return ran

    def _due(self, runner: Runner) -> Millis | None:
        """When a job is due, or when the limits of its queue allow it."""
        found = (self.node.next_due(), self.node.next_token(runner.queues))
        return min((each for each in found if each is not None), default=None)

    def _next(self, runner: Runner, entries: Sequence[Entry]) -> float:
        """When a job or a tick is due."""
        due = self._due(runner)
        jobs = [] if due is None else [self.now + (due - self.node.now.mono) / 1000]
        ticks = [_tick(schedule, self.now) for schedule in runner.app.crons.schedules]
        added = [tick for entry in entries if (tick := entry.next(self.now)) is not None]
        return min([*jobs, *ticks, *added], default=float("inf"))

    async def _run_due(self, runner: Runner, may_die: bool, before: int = 0) -> list[Ran]:
        ran: list[Ran] = []
        while (one := await runner.run_next()) is not None:
            ran.append(one)
            if one.end == "dead" and not may_die:
                raise JobDiedError(f"{one}\nIf it may die, say `may_die=True`.") from one.error
            if before + len(ran) > MOST_RUNS:
                last = ", ".join(str(each) for each in ran[-3:])
                raise EndlessError(f"more than {MOST_RUNS} runs; the last ones: {last}")
        return ran

    @property
    def blocking(self) -> "BlockingInline":
        """The same for tests without an event loop."""
        return BlockingInline(self)


@attrs.frozen(eq=False)
class BlockingInline:
    """`perform`, `run_all` and `run_for` in a separate event loop of Trio."""

    _inline: Inline

    def perform(
        self, task: Prepared[..., Result] | Call[Result], *args: Any, **kwargs: Any
    ) -> Result:
        """`Inline.perform`."""
        return _run(partial(self._inline.perform, task, *args, **kwargs))

    def run_all(self, app: AnyApp, *, may_die: bool = False) -> list[Ran]:
        """`Inline.run_all`."""
        return _run(partial(self._inline.run_all, app, may_die=may_die))

    def run_for(self, app: AnyApp, seconds: float, *, may_die: bool = False) -> list[Ran]:
        """`Inline.run_for`."""
        return _run(partial(self._inline.run_for, app, seconds, may_die=may_die))


def _run(act: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    return anyio.run(act, backend="trio")


def _tick(schedule: Schedule, after: float) -> float:
    return next(schedule.ticks.after(int(after)), float("inf"))


@contextlib.contextmanager
def opened() -> Iterator[Inline]:
    """Let apps use a node in memory during the block."""
    inline = Inline()
    with for_process(world_of(inline.node)):
        yield inline
