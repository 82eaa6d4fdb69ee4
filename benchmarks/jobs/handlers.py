"""What the jobs do, the same in every library, and what the environment tells a worker."""

import asyncio
import os
import time
from pathlib import Path
from typing import Final

from benchmarks.jobs.tally import Tally

URL: Final = "BENCH_URL"
"""Environment: the broker."""
TALLY: Final = "BENCH_TALLY"
"""Environment: the file in which runs are counted."""
LEASE: Final = "BENCH_LEASE"
"""Environment: seconds until the jobs of a dead worker are given to another, where a library can be
told; its own default if not set."""

_kept: list[Tally] = []


def url() -> str:
    """The broker's."""
    return os.environ[URL]


def lease() -> int | None:
    """The value of `LEASE`."""
    return int(os.environ[LEASE]) if os.environ.get(LEASE) else None


def tally() -> Tally:
    """This process's map of the file."""
    if not _kept:
        _kept.append(Tally(Path(os.environ[TALLY])))
    return _kept[0]


def run(number: int, pause_s: float, payload: str) -> None:  # noqa: ARG001
    """A job that blocks its thread for `pause_s`."""
    runs = tally()
    runs.begin(number)
    if pause_s:
        time.sleep(pause_s)
    runs.end(number)


async def run_async(number: int, pause_s: float, payload: str) -> None:  # noqa: ARG001
    """The same for an event loop of asyncio."""
    runs = tally()
    runs.begin(number)
    if pause_s:
        await asyncio.sleep(pause_s)
    runs.end(number)
