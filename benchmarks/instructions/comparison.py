"""`python -m benchmarks instructions`: counts instructions, and compares them with the record.

An operation that takes more than 2 % more instructions than recorded is an error. `--record` with
the reason accepts it. The form that runs is the one that is measured.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks import output
from benchmarks.instructions import counting, record
from benchmarks.instructions.cases import CASES, Case
from benchmarks.instructions.record import Record, Verdict
from benchmarks.tool import BenchmarkError
from disque_trio.statemachine.form import FORM

WORSE: Final = 3
_TIMES: Final = 2
"""How often what is too much is counted again."""


def main(arguments: Sequence[str]) -> int:
    """Count, compare or record, and print. The exit code."""
    options = _options(arguments)
    console = output.console()
    if not counting.is_installed():
        console.print(f"not counted: {counting.HOW_TO_INSTALL}", style="yellow", highlight=False)
        return 0
    try:
        cases = output.only(options.only, CASES, "case")
        build = record.build()
        known = record.read(record.path())
        counts = counting.count(cases, options.keep)
        is_like = known is not None and known.build == build
        if known is not None and is_like and options.record is None:
            _count_again(counts, known, cases)
    except BenchmarkError as error:
        return output.refuse(console, error)
    verdicts = record.compare(counts, known if known and is_like else Record(build, {}))
    console.print(table(verdicts, cases))
    output.write_json(options.json, counts)
    if options.record is not None:
        is_whole = len(cases) == len(CASES)
        made = record.renewed(known, build, counts, options.record, is_whole=is_whole)
        record.write(record.path(), made)
    elif is_like:
        return _judge(console, verdicts)
    else:
        _tell_builds(console, known, build)
    return 0


def _count_again(counts: dict[str, float], known: Record, cases: Sequence[Case]) -> None:
    """Count what is too much again, and keep the least: a busy machine may add to a count, where an
    operation is cut into steps, and takes nothing away."""
    for _ in range(_TIMES):
        worse = {each.name for each in record.compare(counts, known) if each.is_worse}
        again = [case for case in cases if case.name in worse and case.name in known.counts]
        if not again:
            return
        for name, now in counting.count(again).items():
            counts[name] = min(counts[name], now)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks instructions", description=__doc__.partition("\n\n")[2]
    )
    output.add_only(parser)
    output.add_json(parser)
    parser.add_argument(
        "--record", metavar="REASON", help="these counts are right: store them, with the reason"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="store callgrind's files, for callgrind_annotate"
    )
    options = parser.parse_args(arguments)
    if options.record is not None and not options.record.strip():
        parser.error("--record: say why")
    return options


def _tell_builds(console: Console, known: Record | None, build: dict[str, str]) -> None:
    """Why there is no comparison."""
    if known is None:
        console.print(f"not comparable: the {FORM} form is not recorded", style="yellow")
        return
    console.print(f"not comparable: the {FORM} form is recorded for another build", style="yellow")
    for line in record.differences(known.build, build):
        console.print(f"  {line}", highlight=False, markup=False)


def table(verdicts: Sequence[Verdict], cases: Sequence[Case]) -> Table:
    """Instructions by case."""
    titles = {case.name: case.title for case in cases}
    made = Table("case", "", title=f"instructions for each, {FORM} form")
    for column in ("recorded", "now", "ratio"):
        made.add_column(column, justify="right")
    for verdict in verdicts:
        recorded = "" if verdict.recorded is None else f"{verdict.recorded:,}"
        ratio = "" if verdict.ratio is None else f"{verdict.ratio:.3f}"
        style = "red" if verdict.is_worse else "green" if verdict.is_better else ""
        row = verdict.name, titles[verdict.name], recorded, f"{verdict.now:,}", ratio
        made.add_row(*row, style=style)
    return made


def _judge(console: Console, verdicts: Sequence[Verdict]) -> int:
    worse = [verdict for verdict in verdicts if verdict.is_worse]
    for verdict in worse:
        what = "not recorded" if verdict.ratio is None else f"{verdict.ratio:.3f} times the record"
        console.print(f"{verdict.name}: {what}", style="red", highlight=False)
    if worse:
        console.print(
            "If that is meant: make instructions RECORD='the reason', with FORM=compiled, too",
            highlight=False,
        )
    elif any(verdict.is_better for verdict in verdicts):
        console.print("Some take fewer; RECORD='the reason' keeps it so.", highlight=False)
    return WORSE if worse else 0
