"""The command that pins a run as a plan file: the plan of a seed changes with its scenario and with
the code that expands it."""

from pathlib import Path
from typing import Final

from disque_trio.cli.sim import report
from disque_trio.cli.sim.execution import execute
from disque_trio.cli.sim.options import Pin
from disque_trio.cli.sim.outcomes import PASSED
from disque_trio.cli.sim.sources import plan_from, write_text
from disque_trio.sim.scenarios import plan_file
from disque_trio.terminal.options import UsageError

FOLDER: Final = "pins"
"""Beside the scenario, unless --out is given."""


def pin(options: Pin) -> int:
    """`sim pin`. Exits with 0 even if the run fails: a failure is pinned before it is fixed."""
    (path,) = options.files
    plan = plan_from(path, options.seed)
    if not options.note.strip():
        raise UsageError("--note is empty: describe what the run has found")
    target = Path(options.out or _default(path, f"{plan.scenario}-{plan.seed}.json"))
    result = execute(plan).result
    if options.out is None:
        target.parent.mkdir(exist_ok=True)
    write_text(str(target), plan_file.dump(plan, options.note))
    console = report.out()
    report.show_result(console, result)
    for finding in result.findings[:1]:
        console.print(f"[bold red]violated[/] {report.sentence(finding)}")
    console.print(f"pinned in {target} ({target.stat().st_size / 1000:,.1f} kB)")
    console.print(f"  again with: [bold]disque-trio sim run {target}[/]")
    return PASSED


def _default(path: str, name: str) -> Path:
    folder = Path(path).parent
    return (folder if folder.name == FOLDER else folder / FOLDER) / name
