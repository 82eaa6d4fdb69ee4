"""Checks whether a server with this configuration would start and serve. Changes nothing. Relative
paths are relative to its `dir`, as in the server."""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from typing import Final

import attrs

from disque_trio.net.listeners import ListenError, listen
from disque_trio.net.tls import TlsError
from disque_trio.net.tls import load as load_tls
from disque_trio.observe.finding import Finding, problem, warning
from disque_trio.serving.process import must_write_pid_file
from disque_trio.serving.processes.plan import WorkersError, orders, refuse_strays
from disque_trio.statemachine.address import BUS_OFFSET
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.nodesfile import NodesFileError, parse_nodes
from disque_trio.statemachine.pressure import SAFE_PERCENT
from disque_trio.system import memory_limit, rss_bytes, unwritable
from disque_trio.tracing.live_file import JOB_BYTES

_MAX_SOCKET_PATH: Final = 107
"""Bytes: the kernel's limit for the path of a Unix socket."""
_TLS_ADVICE: Final = "correct the file or the directive; the server would not start"


def judge(path: str, config: Config, *, is_running: bool) -> Iterator[Finding]:
    """Return all findings about a configuration whose lines are valid. Do not try ports and
    sockets if a server is already running."""
    try:
        with contextlib.chdir(config.dir or "."):
            yield from _judge_tls(path, config)
            yield from _judge_files(path, config)
            yield from _judge_trace(path, config)
            yield from _judge_nodes_conf(path, config)
            yield from _judge_memory(path, config)
            if not is_running:
                yield from _judge_ports(path, config)
            if config.unixsocket:
                yield from _judge_socket(path, config.unixsocket, is_running=is_running)
    except OSError as error:
        yield problem(path, f"dir {config.dir}: {error.strerror}", "create it, or correct 'dir'")


def _judge_tls(path: str, config: Config) -> Iterator[Finding]:
    asks = [
        f"{name} {value}"
        for name, value in (("tls-port", config.tls_port), ("tls-cluster", config.tls_cluster))
        if value
    ]
    try:
        load_tls(config)
    except TlsError as error:
        yield problem(path, f"{' and '.join(asks)}: {error}".replace(" True", " yes"), _TLS_ADVICE)


def _judge_files(path: str, config: Config) -> Iterator[Finding]:
    """Check the files that the server writes, and the directories in which it creates files."""
    files = {
        "logfile": config.logfile,
        "cluster-config-file": config.cluster_config_file,
        "appendfilename": config.appendfilename if config.appendonly else "",
        "pidfile": config.pidfile if must_write_pid_file(config) else "",
        "trace-file": config.trace_file,
    }
    for directive, file in files.items():
        reason = unwritable(file) if file else ""
        if reason:
            yield problem(
                path,
                f"{directive} {file}: {reason}",
                f"correct '{directive}', or allow the node's user to write there; the server "
                "would not start",
            )
    directory = config.spill_directory
    if directory and not os.path.isdir(directory):
        reason = "it is not a directory" if os.path.exists(directory) else "it does not exist"
        yield problem(
            path, f"spill-directory {directory}: {reason}", "create it; the server would not start"
        )
    elif directory and not os.access(directory, os.W_OK | os.X_OK):
        yield problem(
            path,
            f"spill-directory {directory}: this user may not write to it",
            "make the node's user its owner, or run the doctor as that user",
        )


def _judge_trace(path: str, config: Config) -> Iterator[Finding]:
    file = config.trace_file
    if not file or unwritable(file):
        return
    if config.trace_file_sample == 1:
        yield warning(
            path,
            f"trace-file {file}: every job is traced, which uses about {JOB_BYTES >> 10} kB of "
            "disk per job",
            "set 'trace-file-sample 100' to trace one job in 100, or remove 'trace-file'",
        )
    if not config.trace_file_max_bytes:
        yield warning(
            path,
            f"trace-file {file}: its size is not limited (trace-file-max-bytes 0)",
            "set 'trace-file-max-bytes 1gb', or move the file away yourself while the server is "
            "down",
        )
    elif not os.access(os.path.dirname(file) or ".", os.W_OK | os.X_OK):
        yield warning(
            path,
            f"trace-file {file}: this user may not write to its directory, so the file cannot be "
            "rotated, and would grow without limit",
            "make the node's user the owner of the directory, or run the doctor as that user",
        )


def _judge_nodes_conf(path: str, config: Config) -> Iterator[Finding]:
    file = config.cluster_config_file
    try:
        with open(file, "rb") as opened:
            text = opened.read()
        if text.strip():
            parse_nodes(text)
    except (FileNotFoundError, IsADirectoryError):
        return
    except (OSError, NodesFileError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        yield problem(
            path,
            f"cluster-config-file {file}: {reason}",
            "repair the file, or move it away to start as a new node",
        )


def _judge_memory(path: str, config: Config) -> Iterator[Finding]:
    """Compare `maxmemory` with the size of this process, which is about that of an empty server."""
    own, limit = rss_bytes(), memory_limit()
    least = (2 * own >> 20) + 1
    if limit is not None and config.maxmemory > limit.size // 100 * SAFE_PERCENT:
        grade = problem if config.maxmemory > limit.size else warning
        yield grade(
            path,
            f"maxmemory {config.maxmemory} ({_mib(config.maxmemory)}): the {limit.source} allows "
            f"{_mib(limit.size)}, so the node may be killed before it refuses jobs",
            f"lower maxmemory to {limit.size // 100 * SAFE_PERCENT >> 20}mb, or leave it out",
        )
    if config.maxmemory <= own:
        yield problem(
            path,
            f"maxmemory {config.maxmemory} ({_mib(config.maxmemory)}): the process itself uses "
            f"about {_mib(own)}, so every job would be refused",
            f"raise maxmemory: with {least}mb, jobs have as much as the process uses",
        )
    elif config.maxmemory < 2 * own:
        yield warning(
            path,
            f"maxmemory {config.maxmemory} ({_mib(config.maxmemory)}): the process itself uses "
            f"about {_mib(own)}, which leaves {_mib(config.maxmemory - own)} for jobs",
            f"raise maxmemory: with {least}mb, jobs have as much as the process uses",
        )


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB"


def _judge_ports(path: str, config: Config) -> Iterator[Finding]:
    try:
        workers = [order.config for order in orders(config)] if config.workers > 1 else []
        refuse_strays(config)
    except WorkersError as error:
        yield problem(path, str(error), "correct the configuration; the server would not start")
        return
    for each in (config, *workers):
        if not each.known_port and each.unixsocket:
            continue
        try:
            listen(attrs.evolve(each, unixsocket="")).close()
        except ListenError as error:
            advice = (
                "stop the process that uses the port, or choose another; the bus uses the client "
                f"port + {BUS_OFFSET}"
            )
            yield problem(path, str(error), advice)


def _judge_socket(path: str, file: str, *, is_running: bool) -> Iterator[Finding]:
    reason = _no_socket(file, is_running=is_running)
    if reason:
        yield problem(
            path,
            f"unixsocket {file}: {reason}",
            "create its directory, or correct 'unixsocket'; the server would not start",
        )


def _no_socket(file: str, *, is_running: bool) -> str:
    """Return why no Unix socket can be created there; empty if one can."""
    if len(os.fsencode(file)) > _MAX_SOCKET_PATH:
        return f"the path is longer than {_MAX_SOCKET_PATH} bytes"
    directory = os.path.dirname(file) or "."
    if not os.path.isdir(directory):
        return f"the directory {directory} does not exist"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"this user may not write to {directory}"
    try:
        is_socket = stat.S_ISSOCK(os.stat(file).st_mode)
    except FileNotFoundError:
        return ""
    if not is_socket:
        return "a file of this name exists, and is not a socket"
    return "" if is_running else _is_taken(file)


def _is_taken(file: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        error = probe.connect_ex(file)
    return "" if error in (errno.ECONNREFUSED, errno.ENOENT) else "another process listens on it"
