"""The command that judges histories of clients (docs/histories.md)."""

from typing import Any

import attrs
from rich.console import Console
from rich.markup import escape

from disque_trio.cli.frame import duration
from disque_trio.cli.sim import report
from disque_trio.cli.sim.options import Judge
from disque_trio.cli.sim.outcomes import NOTHING_TESTED, PASSED, VIOLATED
from disque_trio.sim.histories import judge as histories
from disque_trio.sim.histories.judge import Verdict
from disque_trio.sim.histories.reading import Reader
from disque_trio.sim.histories.records import PROPERTIES, HistoryError, Limits
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import UsageError
from disque_trio.terminal.output import json_text, say


def judge(options: Judge) -> int:
    """`sim judge`."""
    reader = Reader()
    for path in options.files:
        try:
            reader.read(path)
        except HistoryError as error:
            raise UsageError(str(error)) from None
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    history = reader.history(
        Limits(settle=options.settle, slack=options.slack, skew=options.skew),
        has_all_faults=None if options.faults is None else options.faults == "known",
        has_all_clients=not options.are_others,
    )
    verdict = histories.judge(history)
    if options.is_json:
        say(json_text(_plain(verdict), is_compact=True))
    else:
        _show(report.out(), verdict)
    if not verdict.is_ok:
        return VIOLATED
    return PASSED if verdict.deliveries else NOTHING_TESTED


def _plain(verdict: Verdict) -> dict[str, Any]:
    facts: dict[str, Any] = {"is_ok": verdict.is_ok, **attrs.asdict(verdict)}
    facts["seconds"] = round(verdict.seconds, 3)
    facts["by_property"] = histories.by_property(verdict.violations)
    return facts


def _show(console: Console, verdict: Verdict) -> None:
    console.print(
        f"{counted(verdict.calls, 'call')} of {counted(verdict.clients, 'client')} in "
        f"{duration(verdict.seconds)}, {counted(verdict.faults, 'known fault')}"
    )
    console.print(
        f"  {counted(verdict.added, 'job')} added, "
        f"{counted(verdict.unknown, 'ADDJOB')} without an outcome, "
        f"{counted(verdict.deliveries, 'delivery', 'deliveries')}, "
        f"{verdict.redelivered:,} of them repeated, {verdict.after_ack:,} after an acknowledgement"
    )
    console.print(
        f"  {counted(verdict.open, 'job')} without a known end, "
        f"{counted(verdict.keys, 'key')} judged, {verdict.unjudged_keys:,} not judged"
    )
    for note in verdict.notes:
        console.print(f"  [yellow]note[/]: {escape(note)}")
    for found in verdict.violations[: report.MOST_FINDINGS]:
        where = f"job {found.job}: " if found.job else ""
        console.print(
            f"[bold red]violated[/] [bold]{found.property}[/] at {found.at:.3f}, {where}"
            f"{escape(found.text)}"
        )
        console.print(f"  {escape(PROPERTIES[found.property])}")
        console.print(f"  [dim]see {escape(', '.join(found.lines))}[/]")
    rest = len(verdict.violations) - report.MOST_FINDINGS
    if rest > 0:
        console.print(f"  and {rest:,} more")
    if verdict.is_ok and verdict.deliveries:
        console.print("[green]passed[/]")
    elif verdict.is_ok:
        console.print("[bold yellow]nothing tested[/]: no job was delivered")
