"""The configurations of `workers N`: one for each, or an error with the reason.

All share the settings, but each worker has a port, a bus port and a directory of its own, and its
part of the memory. The ports in the configuration are shared by all.
"""

import itertools
import os
import platform
import shlex
from collections.abc import Iterator
from typing import Any, Final

import attrs

from disque_trio.statemachine.address import MAX_PORT
from disque_trio.statemachine.base import LAST_PORT
from disque_trio.statemachine.config import Config
from disque_trio.system import shares_ports_evenly

_SHARED_FILES: Final = (
    "requirepass_file", "cluster_secret_file", "web_reader_password_file", "web_users_file",
    "tls_cert_file", "tls_key_file", "tls_ca_cert_file", "tls_cluster_ca_cert_file", "logfile",
    "spill_directory",
)  # fmt: skip
"""Relative names count from `dir`, which is not the workers' directory."""
_OWN_FILES: Final = ("cluster_config_file", "trace_file", "web_audit_file")
_PREFIX: Final = "worker-"
AGAIN: Final = 3
"""The exit status of a worker that is to be restarted at once (DEBUG RESTART)."""
LONGEST_ORDER: Final = 1 << 17
"""Bytes of a pickled order."""


class WorkersError(Exception):
    """These workers cannot be started: why, and what to do about it."""


@attrs.frozen
class Order:
    """The settings of a worker at its start."""

    number: int
    """From 1."""
    config: Config
    """Its own."""
    shared: Config
    """Of all."""
    config_file: str
    unix_socket: int | None
    """A descriptor that listens; the same one for all."""

    @property
    def siblings(self) -> list[int]:
        """The known ports of the others."""
        first, mine = self.shared.known_port, self.number
        return [first + number for number in range(1, self.shared.workers + 1) if number != mine]


def orders(config: Config, config_file: str = "", unix_socket: int | None = None) -> list[Order]:
    """One for each worker. Raises `WorkersError`."""
    _check_kernel(config)
    _check_ports(config)
    for field in _OWN_FILES:
        _check_name(field.replace("_", "-"), getattr(config, field))
    return [
        Order(number, _own(config, number), config, config_file, unix_socket)
        for number in range(1, config.workers + 1)
    ]


def directory(config: Config, number: int) -> str:
    """The directory of a worker."""
    return os.path.join(config.dir, f"{_PREFIX}{number}")


def make_homes(config: Config) -> None:
    """Create the directories that do not exist. Raises `WorkersError`."""
    for number in range(1, config.workers + 1):
        try:
            os.makedirs(directory(config, number), exist_ok=True)
        except OSError as error:
            raise WorkersError(
                f"cannot make the directory {error.filename} of a worker: {error.strerror}; "
                "choose another place with 'dir'"
            ) from None


def _own(config: Config, number: int) -> Config:
    files: dict[str, Any] = {
        field: os.path.join(config.dir, name)
        for field in _SHARED_FILES
        if (name := getattr(config, field))
    }
    return attrs.evolve(
        config,
        port=config.port and config.port + number,
        tls_port=config.tls_port and config.tls_port + number,
        web_port=config.web_port and config.web_port + number,
        cluster_announce_port=config.cluster_announce_port
        and config.cluster_announce_port + number,
        cluster_announce_bus_port=config.cluster_announce_bus_port
        and config.cluster_announce_bus_port + number,
        dir=directory(config, number),
        # 0 would mean no limit.
        maxmemory=config.maxmemory and max(config.maxmemory // config.workers, 1),
        unixsocket="",
        daemonize=False,
        **files,
    )


def _check_kernel(config: Config) -> None:
    if not shares_ports_evenly():
        raise WorkersError(
            f"{config.workers} workers cannot share a port on {platform.system()}: of all sockets "
            "that listen on it, the kernel gives every connection to the same one; say "
            "'workers 1', and start more nodes with ports of their own"
        )


def _check_ports(config: Config) -> None:
    count = config.workers
    if not config.known_port:
        raise WorkersError(
            f"{count} workers need a port, because they connect to each other on the ports above "
            "it: set 'port' or 'tls-port', or 'workers 1'"
        )
    for name, port in (("port", config.port), ("tls-port", config.tls_port)):
        if port + count > MAX_PORT:
            raise WorkersError(
                f"{name} {port} is too high for {count} workers, which have the ports up to "
                f"{port + count}: it must be at most {MAX_PORT - count}"
            )
    if config.web_port + count > LAST_PORT:
        raise WorkersError(
            f"web-port {config.web_port} is too high for {count} workers: it must be at most "
            f"{LAST_PORT - count}"
        )
    named = {"port": config.port, "tls-port": config.tls_port, "web-port": config.web_port}
    for (name, port), (other, its_port) in itertools.combinations(named.items(), 2):
        if port and its_port and abs(port - its_port) <= count:
            raise WorkersError(
                f"{name} {port} and {other} {its_port} are too close for {count} "
                f"workers, which have the {count} ports above each: keep them {count + 1} apart"
            )


def _check_name(directive: str, name: str) -> None:
    if os.path.basename(name) != name:
        raise WorkersError(
            f"{directive} {name} would be the same file for all workers: give a name without "
            "directories, and each has its own in its directory"
        )


def refuse_strays(config: Config) -> None:
    """WorkersError if a journal would be left that no process reads, with jobs in it."""
    if config.workers > 1:
        _refuse_a_single_nodes_files(config)
    for number in _homes(config):
        journal = os.path.join(directory(config, number), config.appendfilename)
        if (number > config.workers or config.workers == 1) and _has_data(journal):
            raise WorkersError(
                f"{journal} may have jobs that no worker would serve: start with --workers "
                f"{max(number, 2)}, empty that worker (docs/removing.md), and then move its "
                "directory away"
            )


def _refuse_a_single_nodes_files(config: Config) -> None:
    names = [config.cluster_config_file, config.appendfilename]
    left = [name for name in names if _has_data(os.path.join(config.dir, name))]
    if left:
        home = directory(config, 1)
        if any(os.path.exists(os.path.join(home, name)) for name in names):
            raise WorkersError(
                f"{config.dir} has the files of a node that ran without workers "
                f"({', '.join(left)}) beside those of workers; move them to a directory of their "
                "own, and start a node there, at another port, as long as it has jobs "
                "(docs/removing.md)"
            )
        moved = " ".join(shlex.quote(os.path.join(config.dir, name)) for name in left)
        raise WorkersError(
            f"{config.dir} has the files of a node that ran without workers; make it the first "
            f"of them: mkdir -p {shlex.quote(home)} && mv {moved} {shlex.quote(home)}/"
        )


def _has_data(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except OSError:
        return False


def _homes(config: Config) -> Iterator[int]:
    """The numbers of workers that have directories here, in order."""
    try:
        names = os.listdir(config.dir)
    except OSError:
        return
    numbers = [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]
    yield from sorted(int(number) for number in numbers if number.isdecimal())
