"""`python -m tests.sim.mutants`: does the judge catch mistakes that an engineer could make?

Each mutant is run in a process of its own until a seed is not passed that the intact node passes,
or for as many seeds as are asked for (`make mutants`).
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import attrs
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.sim.mutants.hunt import Catch, Hunt
from tests.sim.mutants.mutant import Mutant, all_mutants

_STYLES = {"caught": "green", "equivalent": "dim", "survived": "bold red", "not finished": "yellow"}

_WIDTH = 140
"""Of a table that goes to a file."""


def main() -> int:
    """Run them; 1 if a mutant survived."""
    options = _options()
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    chosen = [each for each in all_mutants().values() if _is_asked_for(each, options.names)]
    if not chosen:
        Console(stderr=True).print(f"no mutant is called {' or '.join(options.names)}")
        return 2
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    hunt = Hunt(options.seeds, until)
    try:
        caught = _run(console, hunt, chosen, options.jobs)
    except KeyboardInterrupt:
        return 130
    console.print(table(caught))
    if options.json:
        rows = [attrs.asdict(each) | {"outcome": each.outcome} for each in caught]
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    console.print(summary(caught))
    return any(each.outcome == "survived" for each in caught)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants, or patterns of their names (all)")
    parser.add_argument("--seeds", type=int, default=200, help="for each at most (200)")
    parser.add_argument("--minutes", type=float, help="begin no further seed after so long")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--json", help="write what came of each to this file as well")
    return parser.parse_args()


def _is_asked_for(mutant: Mutant, names: Iterable[str]) -> bool:
    return not names or any(fnmatch(mutant.name, name) for name in names)


def _run(console: Console, hunt: Hunt, mutants: list[Mutant], jobs: int) -> list[Catch]:
    """What became of each, in their order; one line for each as it comes."""
    found: dict[str, Catch] = {}
    with Progress(console=console, transient=True) as progress, ThreadPoolExecutor(jobs) as pool:
        task = progress.add_task("mutants", total=len(mutants))
        try:
            for future in as_completed([pool.submit(hunt.run, each) for each in mutants]):
                catch = found[future.result().mutant] = future.result()
                console.print(told(catch), highlight=False, soft_wrap=True)
                progress.advance(task)
        except BaseException:
            hunt.stop()
            pool.shutdown(cancel_futures=True)
            raise
    return [found[each.name] for each in mutants]


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
    sys.exit(main())
