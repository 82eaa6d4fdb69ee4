"""A report as text for people."""

from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from disque_trio.explain.facts import NO_JOURNAL, Facts
from disque_trio.explain.report import Line, Report
from disque_trio.explain.rules import MAY, NO, YES
from disque_trio.sim.checkers.duplicates import CAUSES
from disque_trio.terminal.counting import counted

_COLOURS: Final = {NO: "green", MAY: "yellow", YES: "bold red"}


def show(console: Console, report: Report, heading: str = "") -> None:
    """The report: the cluster, what holds always, a line for each fault, causes, hints."""
    if heading:
        console.print(escape(heading))
    console.print(f"[bold]{cluster(report.facts)}[/]")
    if report.refusal:
        console.print(f"  [bold red]refused[/] {escape(report.refusal)}")
        return
    for remark in report.remarks:
        console.print(f"  {escape(remark)}")
    console.print()
    if report.holders:
        _show_holders(console, report)
    console.print(_table(report))
    console.print()
    for cause in _causes(report):
        console.print(f"[dim]{cause:3} {CAUSES[cause]}[/]")
    for hint in report.hints:
        console.print(f"+ {escape(hint)}")
    _show_agreement(console, report)


def _show_holders(console: Console, report: Report) -> None:
    confirmed = sum(each.is_confirmed for each in report.holders)
    rest = "; the rest follow or are re-created" if confirmed < report.request.copies else ""
    console.print(f"confirmed by {confirmed} of {counted(report.request.copies, 'node')}{rest}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("node", "zone", "replica", "why this node"):
        table.add_column(head)
    for each in report.holders:
        state = {"none": "none yet", "unknown": "no answer"}.get(each.state, each.state)
        table.add_row(*map(escape, (each.node, each.zone or "-", state, each.why)))
    console.print(table)
    console.print()


def cluster(facts: Facts) -> str:
    """The facts in a line."""
    count = counted(facts.nodes, "node")
    parts = [f"{count}, {facts.silent} more do not answer" if facts.silent else count]
    if facts.originals:
        parts.append(f"{facts.originals} of them cannot store jobs with options of disque_trio")
    if zones := facts.zone_names:
        count = f"in {counted(len(zones), 'zone')}"
        parts.append(f"{count}: {', '.join(zone or 'none' for zone in zones)}")
    parts.append("no journal" if facts.journal == NO_JOURNAL else f"appendfsync {facts.journal}")
    if facts.nodes > 1:
        repair = f"after {facts.repair_s:,} s" if facts.repair_s else "never"
        parts.append(f"replicas of lost nodes are re-created {repair}")
    return "; ".join(parts)


def _table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    has_trials = any(line.tried for line in report.lines)
    heads = ["if", "lost?", "why", "duplicates", "delay"]
    for head in [*heads, "in trials"] if has_trials else heads:
        table.add_column(head)
    for line in report.lines:
        answer = line.answer
        lost = answer.loss.lost
        cells = [
            answer.title,
            f"[{_COLOURS[lost]}]{lost}[/]",
            answer.loss.why,
            " ".join(answer.twice) or "no",
            "-" if answer.late is None else f"up to {answer.late / 1000:,g} s",
        ]
        table.add_row(*cells, *([_tried(line)] if has_trials else []))
    return table


def _tried(line: Line) -> str:
    tried = line.tried
    if tried is None:
        return ""
    parts = [f"{tried.lost:,} of {tried.jobs:,} lost"]
    if tried.twice:
        parts.append(f"{tried.twice:,} twice ({' '.join(tried.causes)})")
    if tried.dead:
        parts.append(f"{tried.dead:,} dead")
    if tried.refused:
        parts.append(f"{tried.refused:,} refused")
    return ", ".join(parts)


def _causes(report: Report) -> list[str]:
    named = {cause for line in report.lines for cause in line.answer.twice}
    return [cause for cause in CAUSES if cause in named]


def _show_agreement(console: Console, report: Report) -> None:
    runs = sum(line.tried.runs for line in report.lines if line.tried)
    for text in report.disagreements:
        console.print(f"[bold red]rules and trials disagree[/] {escape(text)}")
    if runs and not report.disagreements:
        each = max(line.tried.runs for line in report.lines if line.tried)
        console.print(
            f"[green]rules and trials agree[/] in {counted(runs, 'run')}, {each:,} of each fault; "
            "an event that no run shows has a rate of at most "
            f"{min(3 / each, 1):.2%} per run (95 %)"
        )
