"""`python -m benchmarks`: ours beside other servers. `--help` lists the other benchmarks."""

import argparse
import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import Progress

from benchmarks import compare, contenders, drawing, history, output, page
from benchmarks import report as reports
from benchmarks.cases import CASES, TARGETS
from benchmarks.tool import HOW_TO_INSTALL, BenchmarkError, is_installed

OTHERS: Final = {
    "sim": ("simulator", "the simulator's speed"),
    "profile": ("profile", "where a node's time goes"),
    "inprocess": ("inprocess", "a node without sockets"),
    "instructions": ("instructions.comparison", "instructions per operation beside those recorded"),
    "crowd": ("crowd", "the latency of one client beside many others"),
    "console": ("console", "the console with 100,000 queues and 2 million jobs"),
    "workers": ("workers", "one process against several behind one port"),
    "mixes": ("mixes", "resident memory against maxmemory"),
    "duplicates": ("duplicates", "how often jobs come twice"),
    "recovery": ("recovery", "how fast a journal is loaded"),
    "jobs": ("jobs.comparison", "our worker library beside others"),
    "lake": ("lake", "how fast a lake is filled and queried"),
    "connector": ("connector", "queues as sources and sinks of Spark"),
}
"""Other benchmarks: their modules, imported when asked for, since some need extras."""
_QUICK: Final = 0.02
"""The size of samples with --quick."""
FAILED: Final = 1
WORSE: Final = 3
INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words and words[0] in OTHERS:
            module = import_module(f"benchmarks.{OTHERS[words[0]][0]}")
            return int(module.main(words[1:]))
        return _compare(_options(words))
    except KeyboardInterrupt:
        return INTERRUPTED


def _compare(options: argparse.Namespace) -> int:
    console = output.console()
    if options.list:
        for case in CASES:
            console.print(f"{case.name:16} {case.title}", highlight=False)
        return 0
    try:
        _check_places(options)
        if options.of is not None:
            return _tell(_report_of(options.of), [], options, console)
        plan = _plan(options)
        earlier = _earlier(options)
    except BenchmarkError as error:
        return output.refuse(console, error)
    return _measure(plan, earlier, options, console)


def _measure(
    plan: compare.Plan,
    earlier: reports.Report | None,
    options: argparse.Namespace,
    console: Console,
) -> int:
    """Take all samples, and tell of them; the exit code."""
    for hint in ("" if is_installed() else HOW_TO_INSTALL, contenders.missing()):
        if hint:
            console.print(hint, style="yellow", highlight=False)
    _raise_limit()
    rows: compare.Rows = {}
    problems: list[str] = []
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("", total=plan.steps())
        try:
            compare.run(
                plan, lambda title: bar.update(task, description=title, advance=1), rows, problems
            )
        except (KeyboardInterrupt, BenchmarkError) as error:
            # Ctrl-C ends the servers too, who are then complained of.
            problems.append(f"the rest: {str(error) or 'interrupted'}")
    for name in (name for name in list(rows) if earlier is not None and name in earlier.rows):
        if not plan.is_whole(rows, name):
            problems.append(f"{name}: not all of it, and what the file had of it is kept")
            del rows[name]
    report = reports.make(rows, plan.contenders, plan.size, earlier)
    return _tell(report, problems, options, console)


def _raise_limit() -> None:
    """As many open files as are allowed, here and in the servers: some cases have many clients."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="disque_trio beside other servers, case by case, in one run.",
        epilog="Others: "
        + ", ".join(
            f"'python -m benchmarks {name} --help' ({about})" for name, (_, about) in OTHERS.items()
        ),
    )
    parser.add_argument(
        "--against",
        default="",
        metavar="PATH",
        help="a server that speaks Disque and takes its options, to be compared with",
    )
    parser.add_argument("--list", action="store_true", help="print the cases, and measure nothing")
    output.add_only(parser)
    parser.add_argument(
        "--without", default="", metavar="NAME,NAME", help="contenders that are left out"
    )
    parser.add_argument("--rounds", type=int, default=3, help="medians are of so many (3)")
    parser.add_argument(
        "--size", type=float, default=1.0, metavar="X", help="of samples: less is quicker (1)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="see that all works: the figures mean little"
    )
    output.add_json(parser, "write all there, and a picture beside it")
    parser.add_argument(
        "--add", action="store_true", help="keep what the file of --json has of other cases"
    )
    parser.add_argument(
        "--from", dest="of", type=Path, metavar="FILE", help="measure nothing: tell of this report"
    )
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="put the tables there, between its marks"
    )
    parser.add_argument("--record", action="store_true", help=f"add a line to {history.PATH.name}")
    parser.add_argument(
        "--strict", action="store_true", help=f"exit {WORSE} if a ratio has fallen by over 10 %%"
    )
    return parser.parse_args(argv)


def _plan(options: argparse.Namespace) -> compare.Plan:
    if options.rounds < 1:
        raise BenchmarkError(f"--rounds {options.rounds}: at least one is needed")
    if not 0 < options.size <= 1:
        raise BenchmarkError(f"--size {options.size:g}: more than 0, 1 at most")
    found = [contenders.ours(), *contenders.others(options.against)]
    left_out = _left_out(options.without, [each.name for each in found[1:]])
    return compare.Plan(
        cases=output.only(options.only, CASES),
        contenders=[found[0], *(each for each in found[1:] if each.name not in left_out)],
        rounds=1 if options.quick else options.rounds,
        size=_QUICK if options.quick else options.size,
    )


def _left_out(text: str, found: Sequence[str]) -> list[str]:
    """Programs that are known, whether this machine has them or not."""
    names = output.split("--without", text)
    known = dict.fromkeys([*contenders.KNOWN, *found])
    for name in names:
        if name not in known:
            raise BenchmarkError(
                f"--without {name}: there is no such contender; there are {', '.join(known)}"
            )
    return names


def _check_places(options: argparse.Namespace) -> None:
    """That all can be written there is seen before it takes an hour to measure."""
    if options.page is not None:
        page.check(options.page)
    if options.json is not None:
        _check_place(options.json)


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise BenchmarkError(f"--json {path}: this is a directory, name a file in it")
    if not path.parent.is_dir():
        raise BenchmarkError(f"--json {path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise BenchmarkError(f"--json {path}: it cannot be written")


def _earlier(options: argparse.Namespace) -> reports.Report | None:
    """The run before, of which something is kept."""
    if not options.add:
        return None
    if options.json is None:
        raise BenchmarkError("--add: to what? Name the file with --json")
    return _report_of(options.json) if options.json.exists() else None


def _report_of(path: Path) -> reports.Report:
    try:
        return reports.from_json(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, KeyError) as error:
        raise BenchmarkError(f"{path} is no report of an earlier run: {error}") from error


def _tell(
    report: reports.Report, problems: Sequence[str], options: argparse.Namespace, console: Console
) -> int:
    """Print and write what came of it; the exit code."""
    verdicts = reports.verdicts(report, CASES, TARGETS)
    tables = [*reports.tables(report, CASES), reports.targets_table(verdicts)]
    for table in tables:
        if table.row_count:
            console.print(table)
    for problem in problems:
        console.print(f"not measured: {problem}", style="red", highlight=False, markup=False)
    fallen = history.regressions(report, CASES, history.read())
    for line in fallen:
        console.print(line, style="yellow", highlight=False, markup=False)
    output.write_json(options.json, reports.as_json(report, CASES))
    if options.json is not None:
        options.json.with_suffix(".svg").write_text(drawing.picture(report, CASES), "utf-8")
    if options.page is not None:
        page.fill(options.page, report, tables)
        options.page.with_suffix(".svg").write_text(drawing.picture(report, CASES), "utf-8")
    if options.record:
        history.record(report, CASES)
    if problems:
        return FAILED
    return WORSE if fallen and options.strict else 0


if __name__ == "__main__":
    # SIGTERM is a Ctrl-C, too: servers are ended, and what they wrote is removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
