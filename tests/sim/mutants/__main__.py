"""`python -m tests.sim.mutants`: does the judge catch mistakes that an engineer could make?

Each mutant is run until a seed is not passed that the intact node passes, or for as many seeds as
are asked for (`make mutants`). What has been found is kept in a file: if the run is ended, the next
one goes on from there.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from tests.sim.mutants import scores
from tests.sim.mutants.hunt import Catch, Hunt
from tests.sim.mutants.kept import FILE, Kept, key
from tests.sim.mutants.mutant import all_mutants
from tests.sim.mutants.operators import Drawn, draw

SWARM: Final = "everything"
"""The scenario in which drawn mutants are tried."""
ENGINE: Final = "heap"
_STYLES: Final = {
    "caught": "green",
    "equivalent": "dim",
    "survived": "bold red",
    "not reached": "bold red",
    "not finished": "yellow",
}
_WIDTH: Final = 140
"""Of a table that goes to a file."""


@attrs.frozen
class Job:
    """One mutant to run, and the key under which its outcome is kept."""

    name: str
    key: str
    run: Callable[[], Catch]
    diff: str = ""


def main() -> int:
    """Run them; 1 if a mutant survived."""
    options = _options()
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    hunt = Hunt(options.seeds, _until(options.minutes), options.budget)
    kept = Kept(Path(options.state))
    try:
        jobs = _drawn(console, hunt, kept, options) if options.drawn else _made(hunt, options)
        if not jobs:
            Console(stderr=True).print(f"no mutant is called {' or '.join(options.names)}")
            return 2
        caught = _run(console, hunt, kept, jobs, options.jobs)
    except KeyboardInterrupt:
        return 130
    finally:
        hunt.stop()
    console.print(table(caught))
    if options.json:
        rows = [attrs.asdict(each) | {"outcome": each.outcome} for each in caught]
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    if options.drawn:
        console.print(scores.table(caught, scores.survivors()))
    console.print(summary(caught))
    return any(each.outcome in ("survived", "not reached") for each in caught)


def _until(minutes: float | None) -> float:
    return time.monotonic() + 60 * minutes if minutes else float("inf")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants, or patterns of their names (all)")
    parser.add_argument("--seeds", type=int, default=200, help="for each at most (200)")
    parser.add_argument("--minutes", type=float, help="begin no further seed after so long")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="seconds of processor time for each"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--json", help="write what came of each to this file as well")
    parser.add_argument("--state", default=str(FILE), help=f"what is known already ({FILE.name})")
    drawn = parser.add_argument_group("mutants that operators make, in place of the hand-made ones")
    drawn.add_argument("--drawn", type=int, metavar="N", help="so many")
    drawn.add_argument("--draw", type=int, default=0, metavar="SEED", help="which ones (0)")
    drawn.add_argument("--scenario", default=SWARM, help=f"where they are tried ({SWARM})")
    drawn.add_argument("--engine", default=ENGINE, help=f"in which engine ({ENGINE})")
    return parser.parse_args()


def _made(hunt: Hunt, options: argparse.Namespace) -> list[Job]:
    return [
        Job(each.name, key(each, hunt.seeds), partial(hunt.run, each))
        for each in all_mutants().values()
        if _is_asked_for(each.name, options.names)
    ]


def _drawn(console: Console, hunt: Hunt, kept: Kept, options: argparse.Namespace) -> list[Job]:
    chosen = [
        each
        for each in draw(options.drawn, options.draw)
        if _is_asked_for(each.name, options.names)
    ]
    with _progress(console) as progress:
        task = progress.add_task("the intact node", total=hunt.seeds)
        for swarm in kept.swarm(hunt, options.scenario, options.engine):  # noqa: B007
            progress.advance(task)
    where = f"{options.scenario} {options.engine} {hunt.seeds} {hunt.budget}"

    def job(each: Drawn) -> Job:
        return Job(each.name, key(each, where), lambda: hunt.try_drawn(each, swarm), each.diff())

    return [job(each) for each in chosen]


def _is_asked_for(name: str, names: Iterable[str]) -> bool:
    return not names or any(fnmatch(name, pattern) for pattern in names)


def _progress(console: Console) -> Progress:
    columns = "{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True)


def _run(console: Console, hunt: Hunt, kept: Kept, jobs: list[Job], processes: int) -> list[Catch]:
    """What became of each, in their order; one line for each as it comes, and the change if it was
    not caught."""
    found = {each.name: catch for each in jobs if (catch := kept.catch(each.key)) is not None}
    left = [each for each in jobs if each.name not in found]
    with _progress(console) as progress, ThreadPoolExecutor(processes) as pool:
        task = progress.add_task("mutants", total=len(jobs), completed=len(found))
        try:
            running = {pool.submit(each.run): each for each in left}
            for future in as_completed(running):
                job = running[future]
                catch = found[job.name] = future.result()
                kept.keep(job.key, catch)
                console.print(told(catch), highlight=False, soft_wrap=True)
                if job.diff and not catch.found:
                    console.print(job.diff, highlight=False, markup=False, soft_wrap=True)
                progress.advance(task)
        except BaseException:
            hunt.stop()
            pool.shutdown(cancel_futures=True)
            raise
    return [found[each.name] for each in jobs]


def told(catch: Catch) -> str:
    """One line about it."""
    style = _STYLES[catch.outcome]
    words = f"[{style}]{catch.outcome}[/] {catch.mutant}"
    if catch.found:
        words += f": {', '.join(catch.found)} in {catch.plan}, seed {catch.seed}"
    return words + (f" ({catch.runs} seeds, {catch.cpu:.1f} s)" if catch.runs else "")


def table(caught: Iterable[Catch]) -> Table:
    """All of them."""
    columns = ("mutant", "outcome", "caught by", "expected", "plan", "seeds", "CPU s")
    shown = Table(*columns, box=None, header_style="bold")
    for each in caught:
        cells: list[Any] = [each.mutant, f"[{_STYLES[each.outcome]}]{each.outcome}[/]"]
        cells += [" ".join(each.found), " ".join(each.expected), each.plan]
        shown.add_row(*cells, str(each.runs), f"{each.cpu:.1f}")
    return shown


def summary(caught: list[Catch]) -> str:
    """How many of which."""
    counts = {outcome: sum(each.outcome == outcome for each in caught) for outcome in _STYLES}
    words = [f"{count} {outcome}" for outcome, count in counts.items() if count]
    return f"{len(caught)} mutants: {', '.join(words)}"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the processes, too
    sys.exit(main())
