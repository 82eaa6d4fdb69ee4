"""`make chaos MINUTES=10`: five real nodes with append-only files, whose links run through proxies.
They are killed, stopped, cut off and slowed under load, and judged by what their clients saw."""

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from disque_trio.cli.sim import main as sim
from tests.chaos.running import SETTLE_S, SLACK_S, Chaos, Result


def main() -> int:
    """The exit status: 0 if no promise was broken, and no node ended by itself."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of rounds (10)")
    parser.add_argument("--nodes", type=int, default=5, help="how many (5)")
    parser.add_argument("--seed", type=int, help="of faults and load (drawn)")
    parser.add_argument("--keep", action="store_true", help="keep the files of a run that passed")
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    console = Console()
    directory = Path(tempfile.mkdtemp(prefix="disque-chaos-"))
    console.print(
        f"seed {seed}, {options.nodes} nodes behind user-space proxies, files in {directory}",
        highlight=False,
    )
    result = _run(console, Chaos(directory, seed, options.nodes), 60 * options.minutes)
    console.print(_table(result))
    limits = ("--settle", f"{SETTLE_S:g}", "--slack", f"{SLACK_S:g}")
    status = sim(["judge", *limits, str(result.history)])
    for complaint in result.complaints:
        console.print(complaint, markup=False, style="red")
    if status or result.complaints:
        console.print(f"files are kept in {directory}", highlight=False)
        return status or 1
    if not options.keep:
        shutil.rmtree(directory)
    return 0


def _run(console: Console, chaos: Chaos, seconds: float) -> Result:
    columns = (
        TextColumn("round {task.fields[round]}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    began = time.monotonic()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=seconds, round=0)

        def say(what: str) -> None:
            spent = min(time.monotonic() - began, seconds)
            progress.update(task, description=what, round=chaos.rounds, completed=spent)

        chaos.say = say
        result = chaos.run(began + seconds)
        progress.update(task, description="done", completed=seconds)
    return result


def _table(result: Result) -> Table:
    table = Table("fault", "times", title=f"{result.rounds} rounds")
    table.columns[1].justify = "right"
    for kind, times in sorted(result.faults.items()):
        table.add_row(kind, f"{times:,}")
    return table


if __name__ == "__main__":
    sys.exit(main())
