"""redis-benchmark, an independent load generator."""

import csv
import io
import shutil
import subprocess
from collections.abc import Sequence
from typing import Final

from tests.cluster.processes import postponed_interrupts

CLIENTS: Final = 50
TOOL: Final = "redis-benchmark"
PATIENCE_S: Final = 60.0
"""The limit for a run: some versions hang now and then, mostly with pipelines."""
HOW_TO_INSTALL: Final = f"""{TOOL} is not on PATH, and it sends the load. It comes with Redis:
  Debian, Ubuntu   apt install redis-tools
  Fedora           dnf install redis
  Alpine           apk add redis
  macOS            brew install redis"""


class BenchmarkError(Exception):
    """A measurement has failed; the message is for the user."""


def is_installed() -> bool:
    """Is there a redis-benchmark?"""
    return shutil.which(TOOL) is not None


def ops_per_second(
    port: int,
    words: Sequence[str],
    requests: int,
    pipeline: int = 1,
    clients: int = CLIENTS,
    patience_s: float = PATIENCE_S,
) -> float:
    """Send the same request `requests` times from `clients` clients. Returns the replies per
    second."""
    if not is_installed():
        raise BenchmarkError(f"{TOOL} is not on PATH")
    load = ("-n", str(requests), "-c", str(clients), "-P", str(pipeline), "--csv")
    command = [TOOL, "-h", "127.0.0.1", "-p", str(port), *load, *words]
    try:
        done = run(command, patience_s)
    except subprocess.TimeoutExpired:
        raise BenchmarkError(
            f"{' '.join(words)} at port {port}: {TOOL} was not done after {patience_s:g} s"
        ) from None
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    if done.returncode or len(rows) != 1:
        raise BenchmarkError(f"{' '.join(words)} at port {port}: {done.stderr or done.stdout}")
    return float(rows[0]["rps"])


def run(command: Sequence[str], patience_s: float) -> subprocess.CompletedProcess[str]:
    """Like `subprocess.run`, but a process is ended too when a signal comes while it is started.

    Raises subprocess.TimeoutExpired.
    """
    process: subprocess.Popen[str] | None = None
    try:
        with postponed_interrupts():
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        printed, complaint = process.communicate(timeout=patience_s)
        return subprocess.CompletedProcess(command, process.returncode, printed, complaint)
    finally:
        if process is not None:
            process.kill()
            process.communicate()
