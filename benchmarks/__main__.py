"""`python -m benchmarks`: run everything in rounds, show medians and ratios.

`python -m benchmarks crowd` measures what clients suffer among many others;
`python -m benchmarks sim` and `python -m benchmarks duplicates` measure the simulator instead, and
with it; `python -m benchmarks recovery` measures loading, `python -m benchmarks lake` the lake.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import crowd, duplicates, lake, recovery, simulator
from benchmarks.contenders import OURS, YARDSTICK, Contender, alone, has_yardstick, together
from benchmarks.loads import ALONE, TOGETHER, Load
from benchmarks.tool import CLIENTS, HOW_TO_INSTALL, BenchmarkError, is_installed

Samples = dict[str, dict[str, list[float]]]
"""Ops/s of each round, by load and contender."""
OTHERS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "crowd": crowd.main,
    "sim": simulator.main,
    "duplicates": duplicates.main,
    "recovery": recovery.main,
    "lake": lake.main,
}
"""What else can be measured."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in OTHERS:
        return OTHERS[words[0]](words[1:])
    options = _options(words)
    console = Console()
    if not is_installed():
        console.print(HOW_TO_INSTALL, style="red", highlight=False)
        return 2
    samples: Samples = {}
    try:
        _measure(samples, options, console)
    except BenchmarkError as error:
        console.print(f"cannot measure: {error}", style="red", highlight=False, markup=False)
        return 1
    console.print(_table(samples, options))
    if not has_yardstick():
        console.print(f"{YARDSTICK} is not on PATH: no yardstick. {HOW_TO_INSTALL}")
    if options.json is not None:
        options.json.write_text(json.dumps(_report(samples, options), indent=2) + "\n")
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Ops/s of disque_trio, beside redis-server and another Disque server.",
        epilog="Others: 'python -m benchmarks sim --help' (the simulator's speed), "
        "'python -m benchmarks crowd --help' (what clients suffer among many others), "
        "'python -m benchmarks duplicates --help' (how often jobs come twice), "
        "'python -m benchmarks recovery --help' (how fast a node comes back) and "
        "'python -m benchmarks lake --help' (how fast a lake is filled and asked).",
    )
    parser.add_argument(
        "--against",
        default="",
        metavar="PATH",
        help="a server that takes --port, --bind and --dir and speaks Disque",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there too")
    parser.add_argument("--rounds", type=int, default=3, help="medians are of so many (3)")
    parser.add_argument("--requests", type=int, default=100_000, help="for each sample (100000)")
    return parser.parse_args(argv)


def _measure(samples: Samples, options: argparse.Namespace, console: Console) -> None:
    with tempfile.TemporaryDirectory() as name, Progress(console=console, transient=True) as bar:
        task = bar.add_task("", total=options.rounds * (len(ALONE) + len(TOGETHER)))
        for place, loads in ((alone, ALONE), (together, TOGETHER)):
            with place(Path(name), options.against) as contenders:
                for number in range(options.rounds):
                    for load in loads:
                        bar.update(task, description=load.title, advance=1)
                        _sample(samples, contenders, load, options.requests, number)
                    for contender in contenders:
                        contender.flush()


def _sample(
    samples: Samples, contenders: list[Contender], load: Load, requests: int, number: int
) -> None:
    """One sample of each, one after the other: what slows the machine down slows all of them.

    Each round begins with another one, for being first may matter.
    """
    first = number % len(contenders)
    for contender in contenders[first:] + contenders[:first]:
        ops = contender.measure(load, requests)
        samples.setdefault(load.title, {}).setdefault(contender.name, []).append(ops)


# What came of it.


def _table(samples: Samples, options: argparse.Namespace) -> Table:
    names = list(dict.fromkeys(name for row in samples.values() for name in row))
    title = f"ops/s, {CLIENTS} clients: medians of {options.rounds} rounds, ± half their range"
    table = Table("load", title=title)
    table.add_column(OURS, justify="right")
    for name in names[1:]:
        table.add_column(name, justify="right")
        table.add_column("ratio", justify="right")
    for load, row in samples.items():
        cells = [_cell(row[OURS])]
        for name in names[1:]:
            cells += [_cell(row[name]), _ratio(row[OURS], row[name])] if name in row else ["", ""]
        table.add_row(load, *cells)
    return table


def _cell(values: list[float]) -> str:
    median = statistics.median(values)
    half_range = (max(values) - min(values)) / 2
    return f"{median:,.0f} [dim]±{100 * half_range / median:2.0f} %[/dim]"


def _ratio(ours: list[float], theirs: list[float]) -> str:
    return f"{statistics.median(ours) / statistics.median(theirs):.2f}"


def _report(samples: Samples, options: argparse.Namespace) -> dict[str, object]:
    medians = {
        load: {name: statistics.median(values) for name, values in row.items()}
        for load, row in samples.items()
    }
    return {
        "clients": CLIENTS,
        "rounds": options.rounds,
        "requests": options.requests,
        "python": sys.version.split()[0],
        "medians": medians,
        "samples": samples,
    }


if __name__ == "__main__":
    sys.exit(main())
