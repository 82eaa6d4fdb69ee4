"""The process: its clocks, limits, vitals and signals, its garbage collector, going to background.

What systems do differently is in `system`.
"""

import contextlib
import gc
import mmap
import os
import platform
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

import trio

from disque_trio import __version__
from disque_trio.net.file_limits import raise_file_limit
from disque_trio.net.multiplexing import resolve
from disque_trio.net.tls import Keeper
from disque_trio.ports import Log
from disque_trio.serving.config_file import rewrite_file
from disque_trio.statemachine.base import Millis, Now
from disque_trio.statemachine.chores import Shutdown, Vitals
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.stats import Facts
from disque_trio.system import memory_limit, peak_rss_bytes, private, rss_bytes, unwritable

DEAF_S: Final = 3.0
HURRIED_S: Final = 10.0
_COLLECTOR: Final = (2_000, 2, 30_000)
"""Thresholds. The defaults cost a factor of three while jobs pile up, since the collector traverses
all of them again and again (decision 36). With these it traverses each job twice: a pause lasts
1 ms, every fourth 2 ms. Ten times the first threshold took as long in all, with every tenth pause
at 50 ms."""
_PIECE: Final = 60_000
"""Bytes that glibc takes from its heap, and does not map."""


class SystemClock:
    """The `Clock` of a server."""

    def now(self) -> Now:
        """Both clocks."""
        wall_us = time.time_ns() // 1000
        return Now(time.monotonic_ns() // 1_000_000, wall_us // 1000, wall_us % 1000)

    def seconds_until(self, mono: Millis) -> float:
        """How long to sleep until the monotonic clock shows `mono`."""
        return max(0.0, mono / 1000 - time.monotonic_ns() / 1_000_000_000)


class SystemHost:
    """The `Host` of a server."""

    def __init__(
        self,
        config_file: str = "",
        *,
        restart_refusal: str = "",
        rewrite_refusal: str = "",
        journal_refusal: str = "",
        tls: Keeper | None = None,
    ) -> None:
        """The refusals say why this process cannot be restarted, cannot write its configuration
        file, or cannot write a journal as it ends; empty where it can.
        """
        self._config_file = config_file
        self._restart_refusal = restart_refusal
        self._rewrite_refusal = rewrite_refusal
        self._journal_refusal = journal_refusal
        self.tls = tls or Keeper(Config())

    def rewrite_config(self, config: Config) -> str | None:
        """Write the configuration file; an error text when that fails."""
        if not self._config_file:
            return "The server is running without a config file"
        if self._rewrite_refusal:
            return self._rewrite_refusal
        return rewrite_file(self._config_file, config)

    def change_directory(self, path: str) -> str | None:
        """Make `path` the working directory; an error text when that fails."""
        try:
            os.chdir(path)
        except (OSError, ValueError) as error:
            return getattr(error, "strerror", None) or str(error)
        return None

    def raise_file_limit(self, clients: int) -> int:
        """Raise the open file limit for this number of clients. Return for how many it suffices."""
        return raise_file_limit(clients)

    def reload_tls(self, config: Config) -> str | None:
        """Read the certificates again; an error text when they cannot be used."""
        return self.tls.reload(config)

    def vitals(self) -> Vitals:
        """Memory and processor time."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Vitals(
            rss_bytes=rss_bytes(),
            peak_rss_bytes=peak_rss_bytes(),
            cpu_system=own.ru_stime,
            cpu_user=own.ru_utime,
            cpu_system_children=children.ru_stime,
            cpu_user_children=children.ru_utime,
        )

    def has_room(self, size: int) -> bool:
        """Can the process get that many bytes from the system? They are mapped, but not touched:
        that takes microseconds. If that fails, the heap may still have enough free bytes."""
        try:
            mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
        except (OSError, MemoryError):
            return _is_free_in_heap(size)
        return True

    def refuse_shutdown(self, shutdown: Shutdown) -> str | None:
        """Why the process cannot do this; None when it can."""
        if shutdown.restart and self._restart_refusal:
            return self._restart_refusal
        return (shutdown.rewrite_journal and self._journal_refusal) or None


def _is_free_in_heap(size: int) -> bool:
    try:
        pieces = [bytes(_PIECE) for _ in range(size // _PIECE)]
    except MemoryError:
        return False
    return bool(pieces)


def facts(config: Config, config_file: str = "") -> Facts:
    """Facts about this process, for INFO and HELLO."""
    system = os.uname()
    limit = memory_limit()
    return Facts(
        port=config.known_port,
        process_bytes=rss_bytes(),
        memory_limit=0 if limit is None else limit.size // max(config.workers, 1),
        memory_limit_of="" if limit is None else limit.source,
        pid=os.getpid(),
        executable=os.path.abspath(sys.argv[0]),
        config_file=config_file,
        os=f"{system.sysname} {system.release} {system.machine}",
        arch_bits=64 if sys.maxsize > 1 << 32 else 32,
        multiplexing=resolve(config.multiplexing_api),
        runtime=f"{platform.python_implementation()} {platform.python_version()}",
        run_id=os.urandom(20).hex(),
        incarnation=_incarnation(),
        version=__version__,
    )


def _incarnation() -> int:
    """62 bits, unique to this process. A process that was started later has a greater one."""
    return (int(time.time() * 1000) << 21 | int.from_bytes(os.urandom(4)) >> 11) & (1 << 62) - 1


def tame_collector() -> None:
    """Exempt existing objects from the cyclic collector, and set its thresholds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTOR)


def on_signals(stop: Callable[[str], object], reload: Callable[[], object] | None = None) -> None:
    """SIGTERM and SIGINT end the process gracefully, a second SIGINT at once with status 1.

    A second SIGTERM shortens the waits. If the event loop has not handled the first one within
    `DEAF_S`, or has not ended within `HURRIED_S`, the process exits with status 1. `stop` is called
    in this Trio loop, with the signal's name, and `reload` at SIGHUP.
    """
    token = trio.lowlevel.current_trio_token()
    came: list[int] = []
    received: list[str] = []

    def receive(name: str) -> None:
        received.append(name)
        stop(name)

    def handle(number: int, _frame: object) -> None:
        if number == signal.SIGINT and number in came:
            os._exit(1)
        if came:
            signal.setitimer(signal.ITIMER_REAL, DEAF_S)
        came.append(number)
        with contextlib.suppress(trio.RunFinishedError):
            token.run_sync_soon(receive, signal.Signals(number).name)

    def give_up(_number: int, _frame: object) -> None:
        if len(received) < len(came) or len(waits) > 1:
            os._exit(1)
        waits.append(HURRIED_S)
        signal.setitimer(signal.ITIMER_REAL, HURRIED_S)

    waits = [DEAF_S]
    signal.signal(signal.SIGALRM, give_up)
    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)

    def hang_up(_number: int, _frame: object) -> None:
        if reload is not None:
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(reload)

    signal.signal(signal.SIGHUP, hang_up)


def go_to_background() -> Callable[[], None]:
    """Become a daemon, in two steps. Call the returned function once the node has started.

    The original process waits for that call and exits with status 0, or with status 1 if its child
    ends before. Until then the child can report on the terminal why it cannot start.
    """
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        os._exit(0 if os.read(reader, 1) else 1)
    os.close(reader)
    os.setsid()
    if os.fork():
        os._exit(0)

    def detach() -> None:
        let_go_of_terminal()
        os.write(writer, b"1")
        os.close(writer)

    return detach


def let_go_of_terminal() -> None:
    """Redirect standard input, output and error to /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)


class PidFileError(Exception):
    """The file for the process number cannot be written: which, and why."""


def must_write_pid_file(config: Config) -> bool:
    """Is there to be a file for the process number, at a place that was chosen? The directory of
    the default belongs to root."""
    return config.daemonize and config.pidfile != Config().pidfile


def check_pid_file(config: Config) -> None:
    """Raises `PidFileError` if a process in the background could not write its number."""
    if must_write_pid_file(config) and (reason := unwritable(config.pidfile)):
        raise PidFileError(
            f"cannot write the pid file '{config.pidfile}': {reason}; make the directory, let this "
            "user write there, or give another 'pidfile'"
        )


@contextlib.contextmanager
def pid_file(path: str, log: Log) -> Iterator[None]:
    """The process number is in this file meanwhile. Failure is only a warning (see
    `check_pid_file`)."""
    try:
        with open(path, "w", encoding="ascii", opener=private) as file:
            file.write(f"{os.getpid()}\n")
    except OSError as error:
        log.warning("cannot write the pid file", path=path, error=error.strerror)
        yield
    else:
        yield
        remove(path)


def remove(path: str) -> None:
    """A file that may not be there."""
    with contextlib.suppress(OSError):
        os.unlink(path)
