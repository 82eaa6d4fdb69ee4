"""Seeds run in other processes, a few ahead of what is asked for."""

import gc
import multiprocessing
import signal
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType

import attrs

from disque_trio.cli.frame import UsageError
from disque_trio.cli.sim import report
from disque_trio.cli.sim.execution import (
    REPEATABLE,
    OverdueError,
    Result,
    engine_called,
    execute,
    last_events,
)
from disque_trio.cli.sim.harvest import Crop, Harvest, Reaper
from disque_trio.cli.sim.sources import scenario_from
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.scenarios.scenario import Scenario

_AHEAD = 4
"""Seeds handed out for each process, so that none waits for work."""


@attrs.frozen
class Task:
    """One seed to run. `is_recheck` is for the sake of the digest alone."""

    path: str
    seed: int
    engine: str
    limit_s: int
    is_recheck: bool = False
    harvest: Harvest | None = None


@attrs.frozen
class Done:
    """A task with what came of it."""

    task: Task
    result: Result
    crop: Crop | None = None
    """For a lake, if there is one."""

    @property
    def ends_piece(self) -> bool:
        """Have all come that were run with it?"""
        return self.crop is None or self.crop.is_last


def run_all(tasks: Iterable[Task], jobs: int) -> Generator[Done, None, None]:
    """Each task's result, as they come. Closing the iterator ends the processes."""
    if jobs == 1:
        with cycles_collected_between_seeds():
            yield from map(run_task, tasks)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin)
    try:
        yield from _flow(pool, iter(tasks), jobs * _AHEAD)
        pool.shutdown()
    except BrokenProcessPool:
        raise UsageError("a process of the sweep was killed; is there too little memory?") from None
    finally:
        for process in multiprocessing.active_children():
            process.terminate()
        # Its thread must have ended before the interpreter does: both close the same pipe.
        pool.shutdown(cancel_futures=True)


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
    """What begins meanwhile inherits it, and is deaf to Ctrl-C while it still imports: it would end
    with a traceback. It comes to this process when the block ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Ctrl-C is the parent's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _set_aside()


def _set_aside() -> None:
    """From now on collect cycles only when asked to, and not among what there is."""
    gc.disable()
    gc.collect()
    gc.freeze()


@contextmanager
def cycles_collected_between_seeds() -> Iterator[None]:
    """When there are fewest. What was there before any seed is not looked through each time: with
    all modules of Spark that takes three times as long as a small seed."""
    was_enabled = gc.isenabled()
    _set_aside()
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
    """Run one seed whose scenario is a file here, in whatever process this is."""
    # Two files may have scenarios of one name.
    name = f"{task.seed}-{zlib.crc32(task.path.encode()):08x}"
    (done,) = run_seeds([task], _scenario(task.path), name)
    return done


def run_seeds(tasks: Sequence[Task], scenario: Scenario, name: str) -> list[Done]:
    """Run seeds of one scenario. `name` is what files with their rows are called."""
    harvest = tasks[0].harvest
    if harvest is None:
        return [_run(task, scenario, None) for task in tasks]
    reaper = Reaper(harvest, scenario.name, name)
    with reaper.barn:
        found = [_run(task, scenario, reaper) for task in tasks]
    return [*map(_unfinished, found[:-1]), _finished(found[-1], reaper)]


def _unfinished(done: Done) -> Done:
    return attrs.evolve(done, crop=done.crop and attrs.evolve(done.crop, is_last=False))


def _finished(done: Done, reaper: Reaper) -> Done:
    return attrs.evolve(done, crop=done.crop and attrs.evolve(done.crop, parts=reaper.barn.parts))


def _run(task: Task, scenario: Scenario, reaper: Reaper | None) -> Done:
    """Run one seed."""
    plan = expand(scenario, task.seed)
    watchers = reaper.watchers(task.seed, task.engine) if reaper else []
    with _limited(task.limit_s):
        result = execute(plan, task.engine, watchers).result
    with suppress(OverdueError), _limited(task.limit_s):
        result = attrs.evolve(result, last=_last(task, result, plan))
    crop = None
    if reaper:
        if reaper.lacks_rows_of(result):
            # A failure, which nobody could foresee. A machine that raises does so again.
            with suppress(Exception, OverdueError), _limited(task.limit_s):
                engine_called(task.engine)(plan, reaper.keep)
        crop = reaper.reap(plan, result)
    gc.collect()
    return Done(task, result, crop)


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Raises `OverdueError` in what takes longer."""

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
    """What came to the job that a failure is about, if it can be seen once more."""
    finding = report.about_a_job(result)
    if finding is None or task.is_recheck or task.engine not in REPEATABLE:
        return ()
    rows = last_events(plan, finding, engine_called(task.engine))
    return tuple(report.event(row) for row in rows)
