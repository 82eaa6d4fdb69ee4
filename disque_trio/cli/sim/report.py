"""Prints results as text with colours, or as JSON."""

import sys
from collections.abc import Sequence
from typing import Any

import attrs
from rich.console import Console
from rich.markup import escape

from disque_trio.cli.sim.execution import Finding, Result
from disque_trio.terminal.consoles import console
from disque_trio.terminal.counting import counted
from disque_trio.terminal.output import json_text
from disque_trio.tracing.rows import Row

MOST_FINDINGS = 8
_WIDE = 200


def out() -> Console:
    """Where results go. Without a terminal lines are as wide as a table needs."""
    width = None if sys.stdout.isatty() else _WIDE
    return console(soft_wrap=True, width=width)


def errors() -> Console:
    """Where progress goes."""
    return console(sys.stderr, soft_wrap=True)


def as_json(result: Result, **more: Any) -> str:
    """One line."""
    return json_text({**plain(result), **more}, is_compact=True)


def plain(result: Result) -> dict[str, Any]:
    """The result as JSON values, without what is empty."""
    facts = attrs.asdict(result)
    return {name: value for name, value in facts.items() if value not in ((), [], {}, "")}


def from_plain(facts: dict[str, Any]) -> Result:
    """The result from the values that `plain` gives."""
    names = {field.name for field in attrs.fields(Result)}
    known = {name: value for name, value in facts.items() if name in names}
    known["findings"] = tuple(Finding(**each) for each in facts.get("findings", ()))
    known["last"] = tuple(facts.get("last", ()))
    return Result(**known)


def show_result(console: Console, result: Result, unseen: Sequence[str] = ()) -> None:
    """The result of a run in a few lines. `unseen` are marks that the scenario expects of some seed
    and that this one has not hit."""
    simulated = result.end / 1_000_000
    speed = f" ({simulated / result.seconds:,.0f}x)" if result.seconds else ""
    console.print(
        f"[bold]{escape(result.scenario)}[/] seed {result.seed}, {result.engine}: "
        f"{simulated:,.1f} s in {result.seconds:.2f} s{speed}, {counted(result.steps, 'event')}"
    )
    console.print(
        f"  {counted(result.added, 'job')} added, "
        f"{counted(result.delivered, 'delivery', 'deliveries')}, {result.lost:,} lost, "
        f"duplicates: {causes(result.duplicates)}"
    )
    if result.marks:
        marks = ", ".join(f"{mark} {count}" for mark, count in result.marks.items())
        console.print(f"  [dim]marks: {marks}[/]")
    if unseen:
        console.print(f"  [dim]not hit, although some seed must: {', '.join(unseen)}[/]")
    if result.is_ok:
        digest = f"  digest {result.digest[:16]}" if result.digest else ""
        console.print(f"[green]passed[/]{digest}")


def causes(duplicates: dict[str, int]) -> str:
    """Duplicates by cause."""
    return ", ".join(f"{cause} {count:,}" for cause, count in duplicates.items()) or "none"


def show_failure(
    console: Console,
    result: Result,
    command: str,
    last: Sequence[str],
    history: Sequence[str] = (),
) -> None:
    """What is wrong, how to repeat it, what became of the job, and its last events."""
    for finding in result.findings[:MOST_FINDINGS]:
        console.print(f"[bold red]violated[/] {sentence(finding)}")
    rest = len(result.findings) - MOST_FINDINGS
    if rest > 0:
        console.print(f"  and {rest:,} more")
    console.print(f"  seed {result.seed}, again with: [bold]{escape(command)}[/]")
    finding_of_job = about_a_job(result)
    if finding_of_job and history:
        console.print(f"  events of job {finding_of_job.job}, one column per node:")
        for line in history:
            console.print(f"    {escape(line)}")
    if finding_of_job and last:
        console.print(f"  the last events of job {finding_of_job.job}:")
        for line in last:
            console.print(f"    {escape(line)}")


def sentence(finding: Finding) -> str:
    """One finding in one line."""
    where = " ".join(
        part
        for part in (
            f"at {finding.time / 1_000_000:.3f} s" if finding.time else "",
            f"on {finding.node}" if finding.node else "",
            f"job {finding.job}" if finding.job else "",
        )
        if part
    )
    return f"[bold]{finding.property}[/] {where + ': ' if where else ''}{escape(finding.text)}"


def about_a_job(result: Result) -> Finding | None:
    """The first finding that is about a job."""
    return next((finding for finding in result.findings if finding.job), None)


def event(row: Row) -> str:
    """One row in one line."""
    towards = {"send": "->", "recv": "<-", "lost": "-x"}.get(row.kind, "")
    parts = [
        f"{row.time / 1_000_000:10.3f}",
        f"{row.node:>4}",
        f"{row.kind:<14}",
        row.cause,
        f"{towards}{row.peer}" if row.peer else "",
        row.client,
        row.detail,
    ]
    return " ".join(part for part in parts if part)
