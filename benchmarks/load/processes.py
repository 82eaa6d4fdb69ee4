"""Load processes: they begin at the same moment, and end with their tasks."""

import contextlib
import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Final

import attrs

from benchmarks.load.tasks import LIMIT_S, Report
from benchmarks.tool import BenchmarkError

_CONTEXT: Final = multiprocessing.get_context("forkserver")
# A fork of a small process is quick, and safe with the threads of a progress bar.
_CONTEXT.set_forkserver_preload(["benchmarks.load.processes"])
_PATIENCE_S: Final = LIMIT_S + 20


@attrs.frozen
class Task:
    """The work of one process: the function gets a `Start` and these arguments."""

    function: Callable[..., Report]
    args: Sequence[Any]


def work(tasks: Sequence[Task], begin: Callable[[], None] = lambda: None) -> list[Report]:
    """Run all tasks at once; `begin` is called when all processes are ready."""
    pipes = [_CONTEXT.Pipe() for _ in tasks]
    processes = [
        _CONTEXT.Process(target=_run, args=(task, theirs), daemon=True)
        for task, (_, theirs) in zip(tasks, pipes, strict=True)
    ]
    try:
        for process in processes:
            process.start()
        for _, theirs in pipes:
            theirs.close()
        for ours, _ in pipes:
            _receive(ours)
        begin()
        for ours, _ in pipes:
            ours.send(None)
        return [_receive(ours) for ours, _ in pipes]
    finally:
        for process in processes:
            if process.pid is not None:
                process.kill()
                process.join()


def _receive(pipe: Connection) -> Any:
    """The next object from a process; its error is raised."""
    if not pipe.poll(_PATIENCE_S):
        raise BenchmarkError(f"a load generator was silent for {_PATIENCE_S:g} s")
    try:
        said = pipe.recv()
    except EOFError:
        raise BenchmarkError("a load generator has ended without a word") from None
    if isinstance(said, str):
        raise BenchmarkError(f"a load generator: {said}")
    return said


def _run(task: Task, pipe: Connection) -> None:
    def start() -> None:
        pipe.send(None)
        pipe.recv()

    try:
        pipe.send(task.function(start, *task.args))
    except Exception as error:  # whatever it is, the parent tells it
        with contextlib.suppress(ConnectionError):  # unless the parent was ended meanwhile
            pipe.send(f"{task.function.__name__}: {error!r}")


def rate(reports: Sequence[Report]) -> float:
    """Jobs per second of all tasks together, from the first beginning to the last end."""
    seconds = max(each.ended for each in reports) - min(each.began for each in reports)
    return sum(each.count for each in reports) / max(seconds, 1e-9)
