"""Runs seeds in other processes, a few ahead of what the caller has taken."""

import gc
import math
import multiprocessing
import os
import signal
import time
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from types import FrameType

import attrs

from disque_trio.cli.sim import report
from disque_trio.cli.sim.collector import Collected, Collector, CollectorOptions
from disque_trio.cli.sim.execution import (
    REPEATABLE,
    OverdueError,
    Result,
    engine_for,
    execute,
    last_events,
)
from disque_trio.cli.sim.sources import scenario_from
from disque_trio.sim.engines.tcp.processes import die_with_parent
from disque_trio.sim.guided.signature import Signature, with_marks
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.scenario import Scenario
from disque_trio.terminal.options import UsageError

_AHEAD = 4
"""Seeds handed out for each process, so that none waits for work."""


@attrs.frozen
class Task:
    """One seed to run. An `is_recheck` is a second run that only compares the digest."""

    path: str
    seed: int
    engine: str
    limit_s: int
    is_recheck: bool = False
    collecting: CollectorOptions | None = None
    expected_s: float = 0.0
    """What the seed has cost in an earlier sweep; 0 if that is not known."""


@attrs.frozen
class Done:
    """A task with its result."""

    task: Task
    result: Result
    collected: Collected | None = None
    """For a lake, if the sweep has one."""

    @property
    def ends_piece(self) -> bool:
        """Is it the last of those that were run together?"""
        return self.collected is None or self.collected.is_last


def run_all(tasks: Iterable[Task], jobs: int) -> Generator[Done, None, None]:
    """The tasks' results in the order in which they are finished. Closing ends the processes."""
    if jobs == 1:
        with cycles_collected_between_seeds():
            yield from map(run_task, tasks)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(os.getpid(),))
    try:
        yield from _flow(pool, iter(tasks), jobs * _AHEAD)
        pool.shutdown()
    except BrokenProcessPool:
        raise UsageError(_KILLED) from None
    finally:
        _end(pool)


_KILLED = "a process of the sweep was killed; is there too little memory?"


def _end(pool: ProcessPoolExecutor) -> None:
    for process in multiprocessing.active_children():
        process.terminate()
    # Its thread must have ended before the interpreter does: both close the same pipe.
    pool.shutdown(cancel_futures=True)


@attrs.frozen
class Play:
    """A plan to run for its signature."""

    plan: Plan
    engine: str
    limit_s: int


@attrs.frozen
class Played:
    """Its result."""

    result: Result
    signature: tuple[str, ...]


class Runner:
    """Plays batches of plans, in this process or in several that stay for all batches."""

    def __init__(self, jobs: int | None) -> None:
        self._jobs = jobs or os.cpu_count() or 1
        self._stack = ExitStack()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Runner":
        if self._jobs == 1:
            self._stack.enter_context(cycles_collected_between_seeds())
            return self
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(
            self._jobs, context, initializer=_begin, initargs=(os.getpid(),)
        )
        self._stack.callback(_end, self._pool)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def all(self, plays: Sequence[Play]) -> Iterator[Played]:
        """The results, in the order of the plans."""
        if self._pool is None:
            yield from map(play, plays)
            return
        try:
            with _ctrl_c_held_back():  # processes may begin here
                futures = [self._pool.submit(play, each) for each in plays]
            for future in futures:
                yield future.result()
        except BrokenProcessPool:
            raise UsageError(_KILLED) from None


def play(what: Play) -> Played:
    """Run a plan, and note its signature."""
    signature = Signature()
    with _limited(what.limit_s):
        result = execute(what.plan, what.engine, [signature.see]).result
    gc.collect()
    return Played(result, tuple(with_marks(signature.elements, result.marks)))


def _flow(pool: ProcessPoolExecutor, tasks: Iterator[Task], ahead: int) -> Iterator[Done]:
    under_way: dict[Future[Done], None] = {}
    while True:
        while len(under_way) < ahead and (task := next(tasks, None)) is not None:
            with _ctrl_c_held_back():  # a process may begin here
                under_way[pool.submit(run_task, task)] = None
        if not under_way:
            return
        finished, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in [each for each in under_way if each in finished]:
            del under_way[future]
            yield future.result()


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """A process that is started meanwhile inherits the blocked signal: Ctrl-C during its imports
    would end it with a traceback. This process receives the signal when the block ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end with it."""
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _freeze_garbage()


def _freeze_garbage() -> None:
    """Collect cycles only on request, and never look at the objects that exist now."""
    gc.disable()
    gc.collect()
    gc.freeze()


@contextmanager
def cycles_collected_between_seeds() -> Iterator[None]:
    """Objects from before are frozen: with all modules of Spark loaded, a collection would take
    three times as long as a small seed."""
    was_enabled = gc.isenabled()
    _freeze_garbage()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


@cache
def _scenario(path: str) -> Scenario:
    return scenario_from(path)


def run_task(task: Task) -> Done:
    """Run one seed whose scenario is a local file, in any process."""
    # Two files may have scenarios of one name.
    name = f"{task.seed}-{zlib.crc32(task.path.encode()):08x}"
    (done,) = run_seeds([task], _scenario(task.path), name)
    return done


def run_seeds(
    tasks: Sequence[Task], scenario: Scenario, name: str, enough_s: float = math.inf
) -> list[Done]:
    """Run seeds of one scenario: all of them, or the first ones until so much time has passed.
    `name` is the name of the files with their rows."""
    until = time.monotonic() + enough_s
    collecting = tasks[0].collecting
    if collecting is None:
        return list(_run_some(tasks, scenario, None, until))
    collector = Collector(collecting, scenario.name, name)
    with collector.writer:
        found = list(_run_some(tasks, scenario, collector, until))
    return [*map(_unfinished, found[:-1]), _finished(found[-1], collector)]


def _run_some(
    tasks: Sequence[Task], scenario: Scenario, collector: Collector | None, until: float
) -> Iterator[Done]:
    for task in tasks:
        yield _run(task, scenario, collector)
        if time.monotonic() > until:
            return


def _unfinished(done: Done) -> Done:
    return attrs.evolve(
        done, collected=done.collected and attrs.evolve(done.collected, is_last=False)
    )


def _finished(done: Done, collector: Collector) -> Done:
    return attrs.evolve(
        done,
        collected=done.collected and attrs.evolve(done.collected, parts=collector.writer.parts),
    )


def _run(task: Task, scenario: Scenario, collector: Collector | None) -> Done:
    """Run one seed."""
    plan = expand(scenario, task.seed)
    watchers = collector.watchers(task.seed, task.engine) if collector else []
    with _limited(task.limit_s):
        done = execute(plan, task.engine, watchers)
        result = done.result
    with suppress(OverdueError), _limited(task.limit_s):
        result = attrs.evolve(result, last=_last(task, result, plan))
    collected = None
    if collector:
        if collector.lacks_rows_of(result):
            # It failed, so its rows are wanted. A machine that raises does so again.
            with suppress(Exception, OverdueError), _limited(task.limit_s):
                engine_for(plan, task.engine)(plan, collector.keep)
        collected = collector.collect(plan, result, done.verdict)
    gc.collect()
    return Done(task, result, collected)


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Raise `OverdueError` in a block that takes longer."""

    def overdue(_signal: int, _frame: FrameType | None) -> None:
        raise OverdueError(f"not finished after {seconds} s")

    before = signal.signal(signal.SIGALRM, overdue)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _last(task: Task, result: Result, plan: Plan) -> tuple[str, ...]:
    """The last events of the job that a failure is about, if the run can be repeated."""
    finding = report.about_a_job(result)
    if finding is None or task.is_recheck or task.engine not in REPEATABLE:
        return ()
    rows = last_events(plan, finding, engine_for(plan, task.engine))
    return tuple(report.event(row) for row in rows)
