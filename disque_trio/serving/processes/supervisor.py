"""The parent process of `workers N`: it starts the workers, and restarts them.

It holds no job and no client. A worker that ends by itself is restarted after a pause, which
doubles while restarts fail; when one worker gets SHUTDOWN, or the supervisor a signal to end, all
end. If a worker cannot start at first, all are stopped, and the process fails as a single node
would.
"""

import contextlib
import os
import pickle
import signal
import site
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs
import trio

import disque_trio
from disque_trio import __version__
from disque_trio.net.listeners import reserve
from disque_trio.net.multiplexing import resolve
from disque_trio.net.tls import Keeper
from disque_trio.serving.config_file import Loaded
from disque_trio.serving.logs import ServerLog, check_log, open_log
from disque_trio.serving.process import (
    check_pid_file,
    go_to_background,
    on_signals,
    pid_file,
    remove,
)
from disque_trio.serving.processes.plan import AGAIN, Order, make_homes, orders, refuse_strays
from disque_trio.serving.secret_files import warn_of_open_configuration, with_secrets
from disque_trio.serving.systemd import Supervisor as ServiceManager
from disque_trio.terminal.counting import counted

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
WELL_AFTER_S: Final = 60.0
"""After a worker has run this long, its next restart has the first pause again."""
_STATUS_BYTES: Final = 4096


def supervise(loaded: Loaded, started_in: str) -> int:
    """Run the workers of a configuration until they are stopped. Return the exit status.

    `started_in` is the directory from which this process was started. Errors are raised as for a
    single node.
    """
    config = loaded.config
    check_log(config)
    check_pid_file(config)
    resolve(config.multiplexing_api)
    refuse_strays(config)
    orders(config)
    warnings: list[str] = []
    warn_of_open_configuration(loaded.path, config, warnings.append)
    Keeper(with_secrets(config, warnings.append))
    with contextlib.ExitStack() as cleanup:
        held = reserve(config)
        cleanup.callback(held.close)
        make_homes(config)
        if config.unixsocket:
            cleanup.callback(remove, os.path.abspath(config.unixsocket))
        detach = go_to_background() if config.daemonize else None
        log = open_log(config)
        for warning in warnings:
            log.warning(warning)
        if detach is not None:
            cleanup.enter_context(pid_file(os.path.abspath(config.pidfile), log))
        unix_socket = held.clients[-1].fileno() if config.unixsocket else None
        crew = Crew(orders(config, loaded.path, unix_socket), started_in, log, detach)
        trio.run(crew.run)
        return crew.status


@attrs.define(eq=False)
class Worker:
    """One worker, and its current process."""

    order: Order
    process: trio.Process | None = None
    is_ready: bool = False
    was_signalled: bool = False
    """Does it end because of a signal, rather than a client's SHUTDOWN?"""
    last_sign_at: float = 0.0

    @property
    def number(self) -> int:
        """From 1."""
        return self.order.number


class Crew:
    """All workers, from the first start to the end."""

    def __init__(
        self,
        orders: list[Order],
        started_in: str,
        log: ServerLog,
        detach: Callable[[], None] | None,
    ) -> None:
        self.status = 0
        """The exit status: 1 when they could not start."""
        self._workers = [Worker(order) for order in orders]
        self._started_in = started_in
        self._log = log
        self._detach = detach
        self._manager = ServiceManager(os.environ)
        self._has_started = False
        self._stopping = trio.Event()

    async def run(self) -> None:
        """Run until all have ended for good."""
        on_signals(self._stop, lambda: self._signal_all(signal.SIGHUP))
        async with trio.open_nursery() as around:
            around.start_soon(self._give_signs_of_life)
            async with trio.open_nursery() as crew:
                for worker in self._workers:
                    crew.start_soon(self._keep, worker)
            around.cancel_scope.cancel()
        self._log.notice("all workers have ended")

    def _stop(self, reason: str) -> None:
        """Stop all workers. A second call signals them again, which hurries their end."""
        if not self._stopping.is_set():
            self._manager.notify("STOPPING=1")
            self._log.notice("stopping all workers", reason=reason)
            self._stopping.set()
        self._signal_all(signal.SIGTERM)

    def _signal_all(self, number: signal.Signals) -> None:
        for worker in self._workers:
            if worker.process is not None:
                worker.process.send_signal(number)

    # One worker.

    async def _keep(self, worker: Worker) -> None:
        """Start it, and restart it whenever it has ended by itself."""
        pause = FIRST_PAUSE_S
        while not self._stopping.is_set():
            began = trio.current_time()
            status = await self._live(worker)
            if self._stopping.is_set():
                return
            if status == 0 and not worker.was_signalled:
                self._stop(f"worker {worker.number} has received SHUTDOWN")
                return
            if status == 1 and not self._has_started:
                self.status = 1
                self._stop(f"worker {worker.number} cannot start")
                return
            if trio.current_time() - began > WELL_AFTER_S:
                pause = FIRST_PAUSE_S
            now = 0.0 if status == AGAIN else pause
            self._log.warning(
                "worker ended", worker=worker.number, how=_how(status), starts_again_in_s=now
            )
            with trio.move_on_after(now):
                await self._stopping.wait()
            pause = min(pause * 2, LONGEST_PAUSE_S)

    async def _live(self, worker: Worker) -> int:
        """Run its process once. The exit status, or minus the signal's number."""
        worker.is_ready = worker.was_signalled = False
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                ours.send(pickle.dumps(worker.order))
                worker.process = await self._process(worker.order, theirs.fileno())
            if self._stopping.is_set():
                worker.process.terminate()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(
                    self._receive_status, worker, trio.socket.from_stdlib_socket(ours)
                )
                status = await worker.process.wait()
                nursery.cancel_scope.cancel()
        worker.process = None
        worker.is_ready = False
        return status

    async def _process(self, order: Order, line: int) -> trio.Process:
        inherited = [line] if order.unix_socket is None else [line, order.unix_socket]
        name = f"{order.number}/{order.shared.workers}"
        return await trio.lowlevel.open_process(
            # -P: never import modules from the working directory.
            [sys.executable, "-P", "-m", "disque_trio.serving.processes.worker", str(line), name],
            stdin=subprocess.DEVNULL,
            pass_fds=inherited,
            cwd=self._started_in,
            env=_environment(),
            # Ctrl-C is for the supervisor, which signals the workers.
            process_group=0,
        )

    async def _receive_status(self, worker: Worker, line: trio.socket.SocketType) -> None:
        """Receive what a node reports to its service manager."""
        while status := await _received(line):
            worker.last_sign_at = trio.current_time()
            for word in status.split("\n"):
                if word == "READY=1":
                    worker.is_ready = True
                    self._notify_ready()
                elif word == "STOPPING=1":
                    worker.was_signalled = True
                elif word.startswith("EXTEND_TIMEOUT_USEC=") and not self._has_started:
                    self._manager.notify("STATUS=loading jobs", word)

    def _notify_ready(self) -> None:
        ready = sum(worker.is_ready for worker in self._workers)
        status = f"STATUS={ready} of {counted(len(self._workers), 'worker')} serve clients"
        if self._has_started or ready < len(self._workers):
            self._manager.notify(status)
            return
        self._has_started = True
        self._manager.notify("READY=1", status)
        self._log.notice(
            "all workers serve clients",
            version=__version__,
            workers=ready,
            port=self._workers[0].order.shared.port,
            tls_port=self._workers[0].order.shared.tls_port,
            pid=os.getpid(),
        )
        if self._detach is not None:
            self._detach()

    async def _give_signs_of_life(self) -> None:
        """Report to systemd's watchdog for this process, and kill workers that hang."""
        while self._manager.interval_s:
            self._manager.notify("WATCHDOG=1")
            await trio.sleep(self._manager.interval_s)
            silent_since = trio.current_time() - 3 * self._manager.interval_s
            for worker in self._workers:
                if worker.is_ready and worker.last_sign_at < silent_since and worker.process:
                    self._log.warning("worker does not respond", worker=worker.number)
                    worker.process.kill()


def _environment() -> dict[str, str]:
    """The environment of a worker."""
    environment = dict(os.environ)
    # Both are about this process.
    environment.pop("NOTIFY_SOCKET", None)
    environment.pop("WATCHDOG_PID", None)
    home = str(Path(disque_trio.__file__).parents[1])
    if home not in site.getsitepackages():
        # The package need not be installed.
        paths = [environment.get("PYTHONPATH", ""), home]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment


async def _received(line: trio.socket.SocketType) -> str:
    try:
        return (await line.recv(_STATUS_BYTES)).decode()
    except OSError:
        return ""


def _how(status: int) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return {0: "by SIGTERM", AGAIN: "to restart"}.get(status, f"with status {status}")
