"""`disque-trio pipeline ingest`: take traces and results of sweeps into a lake."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from disque_trio.cli.pipeline.spark import SparkOptions, part, started
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import DIR, FILE, UsageError, argument, matching, option
from disque_trio.terminal.output import complain, say

HELP = "Add traces of nodes and of simulations, and results of sweeps, to a lake."


_NAME = matching(r".*\S.*", "the name of a cluster, such as berlin", "NAME")


@attrs.frozen(kw_only=True)
class Options(SparkOptions):
    """`pipeline ingest`."""

    lake: str = argument(DIR, "the lake; it is created if it does not exist")
    files: tuple[str, ...] = argument(
        FILE,
        "traces (.jsonl, .arrow, .parquet), results.jsonl of a sweep, or directories of them. "
        "Rows that the lake already has are skipped; of a trace that has grown, only new rows are "
        "read",
        "+",
    )
    run: str = option("--run", _NAME, "name of the cluster whose nodes wrote the traces", "live")


def run(options: Options) -> int:
    """Ingest, tell, and return the exit status: 1 if a file was bad."""
    _check(options.files)
    lake = part("lake.store").Lake.open(options.lake, create=True)
    with started(options) as spark:
        began = time.monotonic()
        outcome = part("lake.ingestion").ingest(spark, lake, options.files, run=options.run)
        took = time.monotonic() - began
    _report(outcome, took)
    return 1 if outcome.bad else 0


def _check(paths: Sequence[str]) -> None:
    """Where there is nothing at all, neither is a lake made nor Spark started."""
    files = part("lake.survey").files_in(paths)
    if not files:
        raise UsageError(f"there are no traces or results in {', '.join(paths)}")
    if not any(Path(file).exists() for file in files):
        raise UsageError(f"there is no file {', '.join(paths)}")


def _report(outcome: Any, took: float) -> None:
    for path, reason in outcome.bad.items():
        complain(f"disque-trio pipeline: {path}: {reason}; nothing of it was added")
    pace = f" in {took:,.1f} s, {outcome.rows / took:,.0f} a second" if outcome.rows else ""
    known = f"; {len(outcome.known)} already known" if outcome.known else ""
    bad = f"; {len(outcome.bad)} bad" if outcome.bad else ""
    taken = f"{counted(len(outcome.taken), 'file')}, {counted(outcome.rows, 'row')}"
    say(f"{taken}{pace}{known}{bad}")
