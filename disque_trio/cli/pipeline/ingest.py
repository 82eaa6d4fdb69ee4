"""`disque-trio pipeline ingest`: take traces and results of sweeps into a lake."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from disque_trio.cli.frame import UsageError
from disque_trio.cli.pipeline.spark import add_spark, part, started
from disque_trio.terminal.output import complain, say

HELP = "Take traces of live nodes and of simulations, and results of sweeps, into a lake."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may stand on the command line."""
    parser.add_argument("lake", metavar="LAKE", help="a folder; it is made if there is none")
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="traces (.jsonl, .arrow, .parquet), results.jsonl of a sweep, or folders of them. "
        "What is in the lake already counts once, and of a trace that has grown only the rest is "
        "read",
    )
    parser.add_argument(
        "--run",
        type=_name,
        default="live",
        metavar="NAME",
        help="the name of the cluster whose live nodes have written the traces (live)",
    )
    add_spark(parser)


def _name(word: str) -> str:
    if not word.strip():
        raise argparse.ArgumentTypeError("a cluster needs a name, such as berlin")
    return word


def run(given: argparse.Namespace) -> int:
    """Ingest, tell, and return the exit status: 1 if a file was bad."""
    _check(given.files)
    lake = part("lake.store").Lake.open(given.lake, create=True)
    with started(given) as spark:
        began = time.monotonic()
        outcome = part("lake.ingestion").ingest(spark, lake, given.files, run=given.run)
        took = time.monotonic() - began
    _tell(outcome, took)
    return 1 if outcome.bad else 0


def _check(paths: Sequence[str]) -> None:
    """Where there is nothing at all, neither is a lake made nor Spark started."""
    files = part("lake.survey").files_in(paths)
    if not files:
        raise UsageError(f"there are no traces or results in {', '.join(paths)}")
    if not any(Path(file).exists() for file in files):
        raise UsageError(f"there is no file {', '.join(paths)}")


def _tell(outcome: Any, took: float) -> None:
    for path, reason in outcome.bad.items():
        complain(f"disque-trio pipeline: {path}: {reason}; nothing of it was taken")
    pace = f" in {took:,.1f} s, {outcome.rows / took:,.0f} a second" if outcome.rows else ""
    known = f"; {len(outcome.known)} known already" if outcome.known else ""
    bad = f"; {len(outcome.bad)} bad" if outcome.bad else ""
    say(f"{len(outcome.taken)} files, {outcome.rows:,} rows{pace}{known}{bad}")
