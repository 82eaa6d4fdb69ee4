"""Checks of this machine, for nodes that run on it or are to run on it.

Most facts are in /proc: without it, only the disk and the configuration file are checked.
"""

import contextlib
import io
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from disque_trio.cli.doctor import startup
from disque_trio.net.file_limits import MAX_LINKS
from disque_trio.net.multiplexing import MultiplexingError, resolve
from disque_trio.observe.cluster import NodeFacts
from disque_trio.observe.finding import Finding, note, problem, warning
from disque_trio.serving.config_file import ConfigFileError, load
from disque_trio.serving.secret_files import (
    SecretFileError,
    warn_of_open_configuration,
    with_secrets,
)
from disque_trio.statemachine.config import Config

HERE: Final = "this machine"
LEAST_FREE: Final = 1 << 30
"""With less free disk space than this there is a warning."""
_NO_FREE: Final = 64 << 20
_LOOPBACK: Final = ("127.", "::1", "localhost", "[::1]")


def judge(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Iterator[Finding]:
    """The kernel's settings."""
    if _read(proc / "sys/vm/overcommit_memory") == "2":
        yield warning(
            HERE,
            "vm.overcommit_memory is 2: a rewrite of the append-only file in a child process may "
            "fail although memory is free",
            "sysctl vm.overcommit_memory=1",
        )
    if "[always]" in _read(sys / "kernel/mm/transparent_hugepage/enabled"):
        yield note(
            HERE,
            "transparent huge pages are always on: memory is released late, and a rewrite copies "
            "it in large pages",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )
    backlog = _read(proc / "sys/net/core/somaxconn")
    if backlog.isdigit() and int(backlog) < Config().tcp_backlog:
        yield note(
            HERE,
            f"net.core.somaxconn is {backlog}, which limits tcp-backlog: bursts of new clients may "
            "be refused",
            f"sysctl net.core.somaxconn={Config().tcp_backlog}",
        )


def judge_node(node: NodeFacts, proc: Path = Path("/proc")) -> Iterator[Finding]:
    """The limits and the disk of a node that runs here."""
    if not node.where.startswith(_LOOPBACK):
        return
    if not proc.is_dir():
        # Not Linux: the limits of other processes cannot be seen.
        directory = node.config.get("dir", "")
        if os.path.isdir(directory):
            yield from judge_disk(node.label, directory)
        return
    process = proc / node.info.get("process_id", "-")
    if not process.is_dir():
        return
    wanted = int(node.config.get("maxclients", "0") or 0)
    limit = _open_files(process)
    if limit is not None and limit < wanted:
        yield warning(
            node.label,
            f"the process may open {limit} files, fewer than maxclients {wanted}",
            "raise the limit (LimitNOFILE= in its systemd unit, or ulimit -n)",
        )
    with contextlib.suppress(OSError):
        yield from judge_disk(node.label, os.readlink(process / "cwd"))


def judge_disk(where: str, directory: str) -> Iterator[Finding]:
    """The room for nodes.conf and the append-only file."""
    try:
        free = shutil.disk_usage(directory).free
    except OSError as error:
        yield problem(where, f"{directory}: {error.strerror}", "create it, or correct 'dir'")
        return
    if free < LEAST_FREE:
        kind = problem if free < _NO_FREE else warning
        yield kind(where, f"only {free >> 20} MiB are free in {directory}", "free space there")
    if not os.access(directory, os.W_OK):
        yield problem(
            where,
            f"this user may not write to {directory}",
            "make the node's user its owner, or run the doctor as that user",
        )


def judge_file(path: str, *, is_running: bool) -> Iterator[Finding]:
    """A configuration file: can a node start with it? Ports are tried unless one runs already."""
    mistakes: list[ConfigFileError] = []
    try:
        config = load([path], io.BytesIO(), mistakes.append).config
    except ConfigFileError as error:
        yield problem(path, error.reason, "the node would not start")
        return
    for mistake in mistakes:
        yield problem(
            mistake.source or path,
            f"line {mistake.number}: {mistake.reason}",
            "correct the line; the node would not start",
        )
    if mistakes:
        return  # the other checks depend on these
    warnings: list[str] = []
    warn_of_open_configuration(path, config, warnings.append)
    try:
        config = with_secrets(config, warnings.append)
    except SecretFileError as error:
        yield problem(path, str(error), "the node would not start")
    for text in warnings:
        what, _, files = text.rpartition(": chmod 600 ")
        yield warning(path, what, f"chmod 600 {files}, and make the node's user its owner")
    yield from judge_disk(path, config.dir)
    try:
        resolve(config.multiplexing_api)
    except MultiplexingError as error:
        yield problem(path, str(error), "the node would not start")
    yield from startup.judge(path, config, is_running=is_running)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY not in (soft, hard) and hard < config.maxclients + 2 * MAX_LINKS:
        yield note(
            path,
            f"a process of this user may open {hard} files, fewer than maxclients "
            f"{config.maxclients} and the links to other nodes may need",
            "raise the limit (LimitNOFILE= in a systemd unit, or ulimit -Hn)",
        )


def _open_files(process: Path) -> int | None:
    for line in _read(process / "limits").splitlines():
        words = line.removeprefix("Max open files").split()
        if line.startswith("Max open files") and words[0].isdigit():
            return int(words[0])
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", errors="replace").strip()
    except OSError:
        return ""
