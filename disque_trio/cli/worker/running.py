"""One worker process, and several under one parent."""

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import anyio
import attrs
from anyio.abc import Listener, Process, SocketAttribute, SocketStream

from disque_trio.cli.worker.logs import log_to_stderr
from disque_trio.cli.worker.options import Options
from disque_trio.client.recorder import Recorder
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import UsageError
from disque_trio.worker import App, UnfitTypeError, runtime
from disque_trio.worker.driver import Worker
from disque_trio.worker.engine.records import SECOND, Queue, Settings
from disque_trio.worker.guarded_loop import GuardedLoop
from disque_trio.worker.handler import JobHandler
from disque_trio.worker.health import pages, serve
from disque_trio.worker.operating.registry import Registrar
from disque_trio.worker.options import LOOKS, queue_of_looks
from disque_trio.worker.signals import run_in_process
from disque_trio.worker.supervisor import Supervisor

CHILD: Final = "DISQUE_WORKER_CHILD"
"""In the environment of a worker process that has a parent, when it starts: its number."""
AUTOMATIC: Final = 1_000, SECOND // 4
"""How many jobs of each queue are held at most, and for how long about."""
MOST_WEIGHT: Final = 100
"""Of a queue with `-Q name=weight`: GETJOB names it so often."""
RELOADED: Final = "DISQUE_WORKER_RELOADED"
"""In the environment of a worker process that `--reload` starts."""
SIGNALS: Final = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT,
)  # fmt: skip
_log: Final = logging.getLogger("disque_trio.worker")


def queues_of(app: App[Any], options: Options) -> dict[str, int]:
    """Return the queues of the worker with their weights; 0 stands for a strict order. Raises
    `UsageError`."""
    queues = [name for name in app.queues if not name.startswith(LOOKS)]
    weighted = [_weighted(queues, name) for name in options.queues if not name.startswith("!")]
    wanted = [name for name, _ in weighted]
    without = [name[1:] for name in options.queues if name.startswith("!")]
    for name in without:
        if name not in (wanted or queues):
            known = ", ".join(wanted or queues)
            raise UsageError(f"-Q !{name}: there is no queue {name} to omit; there are {known}")
    for name in wanted:
        if name not in queues and not app.tasks:
            known = ", ".join(queues)
            raise UsageError(
                f"-Q {name}: {options.app} has no tasks, so it runs only jobs of the queues of its "
                f"consumers: {known or 'there are none'}"
            )
    found = [name for name in dict.fromkeys(wanted or queues) if name not in without]
    if not found:
        raise UsageError(f"{options.app} has no queue to take jobs from: declare tasks, or give -Q")
    weights = dict(weighted)
    is_strict = bool(weighted) and not any(weights.values())
    return {
        each: 0 if is_strict else weights.get(name) or 1
        for name in found
        for each in (queue_of_looks(name, app.limits), name)
    }


def _weighted(queues: Sequence[str], text: str) -> tuple[str, int]:
    """The queue and its weight, of `name=weight`; 0 without one."""
    name, sign, weight = text.rpartition("=")
    if text in queues or not sign or not (weight.isascii() and weight.isdigit()):
        return text, 0
    if not 1 <= int(weight) <= MOST_WEIGHT:
        raise UsageError(f"-Q {text}: a weight must be from 1 to {MOST_WEIGHT}")
    return name, int(weight)


def settings_of(app: App[Any], options: Options) -> Settings:
    """Return the settings of the engine. Raises `UsageError`."""
    weights = queues_of(app, options)
    try:
        seeds = app.cluster.seeds
    except ValueError as error:
        raise UsageError(str(error)) from error
    prefetch, prefetch_window = (options.prefetch, 0) if options.prefetch != "auto" else AUTOMATIC
    return Settings(
        nodes=tuple(map(str, seeds)),
        queues=tuple(
            Queue(name=os.fsencode(name), prefetch=prefetch, weight=weight or 1)
            for name, weight in weights.items()
        ),
        is_strict=not any(weights.values()),
        prefetch_window=prefetch_window,
        concurrency=options.concurrency,
        is_burst=options.burst,
        drain=int(options.drain * SECOND),
        abort=int(options.abort * SECOND),
    )


# One process.


def prepare(app: App[Any], options: Options, child: str = "") -> tuple[Settings, JobHandler]:
    """Return the settings of the engine, and the handler of the jobs. Raises `UsageError`."""
    if options.url:
        app.use(options.url)
    settings = settings_of(app, options)
    try:
        return settings, app.handler(
            threads=options.threads, worker=name_of(options, child), logs_done=options.log_done
        )
    except (UnfitTypeError, ValueError) as error:
        raise UsageError(f"{options.app}: {error}") from error


def run_one(app: App[Any], options: Options, child: str = "", *, has_parent: bool = False) -> int:
    """Run the jobs of an app in this process; the exit status. `child` is its number among several.
    If it has a parent, it ends with it. Raises `UsageError`."""
    settings, handler = prepare(app, options, child)
    parent = _take_stdin() if has_parent else None
    log_to_stderr(options.log_level, child, options.log_format)
    _log.info(
        "process %d of %s started: %s at a time, queues %s, nodes %s",
        os.getpid(),
        options.app,
        counted(options.concurrency, "job"),
        ", ".join(os.fsdecode(queue.name) for queue in settings.queues),
        ", ".join(settings.nodes),
    )
    recorder, name = _recorder(options), name_of(options, child)
    worker = Worker(
        settings=settings,
        handler=handler,
        cluster=app.cluster,
        recorder=recorder,
        name=name,
        app=options.app,
        max_jobs=options.max_jobs,
    )
    beside = partial(_beside, app, worker, has_control=not options.no_control)
    health = _health_of(options, child)
    run = partial(_run, worker, handler, beside=beside, health=health, parent=parent)
    own = {"loop_factory": GuardedLoop} if options.loop == "asyncio" else {}
    with runtime.for_process(runtime.of_worker(name, recorder)):
        return anyio.run(run, backend=options.loop, backend_options=own)


def _recorder(options: Options) -> Recorder | None:
    """Raises `UsageError`."""
    if not options.history:
        return None
    try:
        return Recorder(options.history)
    except OSError as error:
        raise UsageError(f"cannot write {options.history}: {error.strerror or error}") from None


def name_of(options: Options, child: str) -> str:
    """Return the name of the worker."""
    if not options.name:
        return f"{socket.gethostname()}-{os.getpid()}"
    return f"{options.name}-{child}" if child else options.name


def _health_of(options: Options, child: str) -> tuple[str, int] | None:
    """Where to answer HTTP: the children of one parent have ports in a row."""
    if options.health is None:
        return None
    host, port = options.health
    return host, port + int(child) - 1 if child and port else port


async def _beside(app: App[Any], worker: Worker, *, has_control: bool) -> None:
    keeper = app.schedules.keeper()
    async with anyio.create_task_group() as tasks:
        if app.tasks:
            tasks.start_soon(keeper.run)
        if has_control:
            registrar = Registrar(
                worker=worker,
                client=app.client,
                schedules=app.declared_schedules,
                added=keeper.dues,
                attempts=app.attempts,
            )
            await registrar.run()


async def _run(
    worker: Worker,
    handler: JobHandler,
    *,
    beside: Callable[[], Coroutine[Any, Any, None]],
    health: tuple[str, int] | None,
    parent: int | None,
) -> int:
    listener = None if health is None else await _listen(*health)
    async with handler, anyio.create_task_group() as tasks:
        if listener is not None:
            tasks.start_soon(serve, listener, pages(worker.report, worker.times))
        tasks.start_soon(beside)
        if parent is not None:
            tasks.start_soon(_follow, parent, worker)
        status = await run_in_process(worker)
        tasks.cancel_scope.cancel()
    _log.info("the worker has stopped")
    return status


async def _listen(host: str, port: int) -> Listener[SocketStream]:
    try:
        listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    except OSError as error:
        raise UsageError(f"--health {host}:{port}: {error.strerror or error}") from error
    port = listener.extra(SocketAttribute.local_port)
    _log.info("listening for HTTP on %s:%d", host, port)
    return listener


def _take_stdin() -> int:
    """The pipe of the parent. Jobs that read the standard input find its end at once."""
    parent = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return parent


async def _follow(parent: int, worker: Worker) -> None:
    """The parent writes nothing into its pipe: when that ends, so has the parent."""
    await anyio.wait_readable(parent)
    _log.warning("the parent process has ended; stopping")
    worker.drain()


async def _follow_supervising(parent: int, supervisor: Supervisor) -> None:
    """The same for a process that has children."""
    await anyio.wait_readable(parent)
    supervisor.signalled(signal.SIGTERM)


# Several processes.


@attrs.define(eq=False)
class Child:
    """A child process."""

    process: Process

    async def wait(self) -> int:
        """Its exit status."""
        status = await self.process.wait()
        await self.process.aclose()
        return status

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.Signals(number))


def run_several(
    app: App[Any], argv: Sequence[str], options: Options, *, has_parent: bool = False
) -> int:
    """Run this command line in `processes` child processes; the exit status. Raises `UsageError`
    for what would keep each of them from running."""
    prepare(app, options)
    log_to_stderr(options.log_level, form=options.log_format)
    # Trio, for on asyncio a signal to a child that has just ended takes its exit status away.
    parent = _take_stdin() if has_parent else None
    return anyio.run(_supervise, argv, options, parent, backend="trio")


async def _supervise(argv: Sequence[str], options: Options, parent: int | None) -> int:
    supervisor = Supervisor(partial(_start, argv), options.processes, is_burst=options.burst)
    async with anyio.create_task_group() as tasks:
        await tasks.start(_pass_signals_on, supervisor)
        if parent is not None:
            tasks.start_soon(_follow_supervising, parent, supervisor)
        status = await supervisor.run()
        tasks.cancel_scope.cancel()
    return status


async def _pass_signals_on(
    supervisor: Supervisor, *, task_status: Any = anyio.TASK_STATUS_IGNORED
) -> None:
    with anyio.open_signal_receiver(*SIGNALS) as signals:
        task_status.started()
        async for number in signals:
            supervisor.signalled(number)


async def _start(argv: Sequence[str], number: int) -> Child:
    return await start_process(argv, {CHILD: str(number)})


async def start_process(argv: Sequence[str], environment: Mapping[str, str]) -> Child:
    """Run this command line in a child process, whose standard input ends with this process."""
    process = await anyio.open_process(
        [sys.executable, "-m", "disque_trio", "worker", *argv],
        stdin=subprocess.PIPE,
        stdout=None,
        stderr=None,
        env={**os.environ, **environment},
        # Ctrl-C is for the parent, which tells its children.
        start_new_session=True,
    )
    return Child(process)
