"""The command that explores small scopes: all interleavings, not some (docs/exploring.md)."""

from pathlib import Path
from typing import Any

import attrs
from rich.console import Console
from rich.markup import escape
from rich.status import Status

from disque_trio.cli.frame import duration
from disque_trio.cli.sim import report
from disque_trio.cli.sim.options import Explore
from disque_trio.cli.sim.outcomes import PASSED, VIOLATED
from disque_trio.cli.sim.sources import check_writable, write_text
from disque_trio.sim.explore import scope, steps
from disque_trio.sim.explore.scope import Scope, ScopeError
from disque_trio.sim.explore.search import Outcome, Search
from disque_trio.sim.explore.steps import Steps
from disque_trio.sim.picture.page import render
from disque_trio.statemachine.form import COMPILED
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import UsageError
from disque_trio.terminal.output import json_text, say
from disque_trio.tracing.rows import Row


def explore(options: Explore) -> int:
    """`sim explore`."""
    if COMPILED:
        raise UsageError("the compiled package cannot copy nodes: use the pure Python package")
    try:
        if options.replay is not None:
            return _replay(options, options.replay)
        if options.lists:
            return _list(options)
        names = options.files or tuple(scope.shipped())
        check_writable(options.out)
        statuses = [_explore(options, name) for name in names]
    except ScopeError as error:
        raise UsageError(str(error)) from None
    return VIOLATED if VIOLATED in statuses else PASSED


def _list(options: Explore) -> int:
    for name in options.files or scope.shipped():
        found = scope.load(name)
        if options.is_json:
            say(json_text(attrs.asdict(found), is_compact=True))
        else:
            report.out().print(f"[bold]{name:<22}[/] {escape(found.about)}")
    return PASSED


def _explore(options: Explore, name: str) -> int:
    bounded = _bounded(scope.load(name), options)
    console = report.errors()
    with Status(f"{name}: started", console=console) as status:
        shown = _Shown(status, name)
        outcome = Search(bounded, progress=shown.update).run()
    _show(options, bounded, outcome)
    if outcome.violation is None:
        return PASSED
    found = Steps(
        scope=bounded,
        text=scope.text_of(name),
        what=outcome.violation.what,
        path=outcome.violation.path,
    )
    target = options.out or f"{bounded.name}.json"
    write_text(target, steps.dump(found))
    if not options.is_json:
        _print_steps(report.out(), found)
        report.out().print(f"  again with: [bold]disque-trio sim explore --replay {target}[/]")
    return VIOLATED


def _bounded(found: Scope, options: Explore) -> Scope:
    """The scope with the bounds of the command line."""
    bounds: dict[str, Any] = {
        "late": options.late,
        "most_faults": options.faults,
        "seconds": options.seconds,
        "states": options.states,
    }
    return attrs.evolve(found, **{name: one for name, one in bounds.items() if one is not None})


class _Shown:
    """How far an exploration has come: on a terminal only, which `Status` sees to."""

    def __init__(self, status: Status, name: str) -> None:
        self._status = status
        self._name = name

    def update(self, worlds: int, waiting: int, depth: int) -> None:
        """Show it."""
        self._status.update(
            f"{self._name}: {counted(worlds, 'state')}, {waiting:,} to visit, depth {depth}"
        )


def _show(options: Explore, bounded: Scope, outcome: Outcome) -> None:
    if options.is_json:
        facts: dict[str, Any] = attrs.asdict(outcome, recurse=False)
        facts["complete"] = outcome.is_complete
        facts["seconds"] = round(outcome.seconds, 1)
        violation = outcome.violation
        facts["violation"] = None if violation is None else violation.what
        facts |= {"late": bounded.late, "faults": bounded.most_faults}
        say(json_text(facts, is_compact=True))
        return
    console = report.out()
    sizes = (
        f"{counted(outcome.worlds, 'state')}, depth {outcome.depth}, "
        f"{duration(outcome.seconds)} ({counted(outcome.settled, 'future')} judged, "
        f"{counted(outcome.images, 'state')} of single nodes)"
    )
    if outcome.violation is not None:
        console.print(f"[bold]{outcome.scope}[/] [bold red]violated[/]: "
                      f"{escape(outcome.violation.what)}\n  found after {sizes}")  # fmt: skip
    elif outcome.stopped:
        console.print(f"[bold]{outcome.scope}[/] [yellow]stopped[/] at {outcome.stopped}: {sizes}")
    else:
        console.print(f"[bold]{outcome.scope}[/] [green]complete[/]: {sizes}")


def _replay(options: Explore, path: str) -> int:
    check_writable(options.html)
    try:
        text = Path(path).read_text("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a file of steps") from None
    found = steps.read(text)
    rows = _print_steps(report.errors() if options.is_json else report.out(), found)
    if options.html is not None:
        command = f"disque-trio sim explore --replay {path}"
        page = render(steps.plan_of(found.scope), rows, None, replay=command)
        write_text(options.html, page)
    return VIOLATED if found.what else PASSED


def _print_steps(console: Console, found: Steps) -> list[Row]:
    rows: list[Row] = []
    for step in steps.play(found):
        console.print(f"  [dim]{step.time / 1000:8.3f} s[/]  {escape(step.line)}")
        for row in step.rows:
            if row.kind not in ("recv", "crash", "start"):
                name = steps.name_of_job(found.scope, row.job)
                console.print(f"  [dim]{'':10}    {row.node} {row.kind} {name} {row.cause}[/]")
        rows += step.rows
    if found.what:
        console.print(f"  [bold red]violates[/]: {escape(found.what)}")
    return rows
