"""`python -m benchmarks jobs`: our worker library beside others, load by load, in one run."""

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from rich.console import Console
from rich.progress import Progress

from benchmarks import compare, drawing, meters, output, page
from benchmarks import report as reports
from benchmarks.case import Case, Figure
from benchmarks.contenders import OURS
from benchmarks.jobs import environments
from benchmarks.jobs.libraries import REDIS, TRAITS, Library, ours, peers
from benchmarks.jobs.loads import Loads
from benchmarks.programs import DisqueServer, Place, RedisServer
from benchmarks.tool import BenchmarkError

MARKS: Final[page.Marks] = ("<!-- jobs -->\n", "<!-- end of jobs -->\n")
MEMORY: Final = Place("memory", is_fresh=True)
DURABLE: Final = Place("durable", journal="everysec", is_fresh=True)
TITLE: Final = "disque_trio beside other worker libraries"
_KINDS: Final = frozenset({DisqueServer, RedisServer})
_WORKER: Final = Figure("worker", "worker CPU µs/job")
_BROKER: Final = Figure("broker", "broker CPU µs/job")
_DRAIN: Final = (Figure("speed", "jobs/s", more_is_better=True), _WORKER, _BROKER)
_BULK: Final = (
    Figure("speed", "added/s", more_is_better=True),
    Figure("worker", "producer CPU µs/job"),
    _BROKER,
)
_ONE: Final = (
    Figure("add50", "add, ms p50"),
    Figure("add99", "add, ms p99"),
    Figure("start50", "add → start, ms p50"),
    Figure("start99", "add → start, ms p99"),
)
_LOST: Final = (Figure("lost", "not run again"), Figure("twice", "run twice"))
_KILL: Final = (Figure("again", "s until all ran"), *_LOST)
_RESTART: Final = (
    Figure("pause", "longest pause, s"), *_LOST, Figure("ended", "worker ended"),
)  # fmt: skip
_QUICK: Final = 0.1


def cases(loads: Loads) -> list[Case]:
    """All loads."""

    def case(name: str, title: str, **facts: Any) -> Case:
        return Case(name=name, title=title, kinds=_KINDS, is_by_server=True, **facts)

    def wide(subject: Any, size: float) -> Any:
        return loads.drain(subject, size, payload=1000)

    memory, durable = {"place": MEMORY}, {"place": DURABLE}
    return [
        case("drain", "no-op", measure=loads.drain, figures=_DRAIN, **memory),
        case("drain-1k", "1 kB of arguments", measure=wide, figures=_DRAIN, **memory),
        case("sleep", "10 ms sleep, 100 at a time", measure=loads.sleep, figures=_DRAIN, **memory),
        case("drain-durable", "no-op, everysec", measure=loads.drain, figures=_DRAIN, **durable),
        case("bulk", "adding many", measure=loads.bulk, figures=_BULK, **memory),
        case("bulk-durable", "the same, everysec", measure=loads.bulk, figures=_BULK, **durable),
        case("one", "adding one at a time", measure=loads.one, figures=_ONE, **memory),
        case("kill", "kill -9 of a worker", measure=loads.kill, figures=_KILL, rounds=1, **memory),
        case(
            "restart", "kill -9 of the broker, everysec", measure=loads.restart,
            figures=_RESTART, rounds=1, **durable,
        ),
    ]  # fmt: skip


@attrs.frozen
class Results:
    """All that a run has found."""

    report: reports.Report
    shapes: dict[str, str]
    """The best of each library."""
    packages: dict[str, list[str]]
    """What is installed in each environment."""
    redis: str
    """Version of redis-server."""

    def as_json(self, all_cases: Sequence[Case]) -> dict[str, Any]:
        """For `--json`."""
        extra = {"shapes": self.shapes, "packages": self.packages, "redis": self.redis}
        return {**reports.as_json(self.report, all_cases), **extra}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> "Results":
        """What `as_json` wrote."""
        report = reports.from_json(facts)
        return cls(report, facts["shapes"], facts["packages"], facts["redis"])

    def about(self) -> str:
        """What the tables are of."""
        machine = self.report.machine
        best = ", ".join(f"{name} {shape}" for name, shape in self.shapes.items())
        return (
            f"{self.report.date} UTC, commit `{self.report.commit}`: {self.report.compared}; "
            f"redis-server {self.redis}. {machine['processor']}, {machine['cores']} cores, "
            f"{machine['memory_gib']} GiB, {machine['system']}, Python {machine['python']}.\n\n"
            f"Jobs at a time, the quickest of those tried: {best}."
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and tell; the exit code."""
    options = _options(argv)
    console = output.console()
    loads = Loads()
    try:
        if options.page is not None:
            page.check(options.page, MARKS)
        if options.of is not None:
            results = Results.of(json.loads(options.of.read_text("utf-8")))
            return _tell(results, [], options, console)
        problems: list[str] = []
        plan = _plan(options, loads, problems)
    except (BenchmarkError, OSError) as error:
        return output.refuse(console, BenchmarkError(str(error)))
    for problem in problems:
        console.print(problem, style="yellow", highlight=False, markup=False)
    results = _measured(plan, loads, options, problems, console)
    return _tell(results, problems, options, console)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks jobs",
        description="our worker library beside others, each in an environment of its own, which "
        f"is made in {environments.FOLDER.parent.name}/{environments.FOLDER.name}.",
    )
    output.add_only(parser)
    parser.add_argument(
        "--libraries", default="", metavar="NAME,NAME", help=f"of {', '.join(TRAITS)} (all)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="medians are of so many (3)")
    parser.add_argument("--quick", action="store_true", help="see that all works, in one round")
    output.add_json(parser, "write all there, and a picture beside it")
    parser.add_argument("--add", action="store_true", help="keep what that file has of other cases")
    parser.add_argument(
        "--from", dest="of", type=Path, metavar="FILE", help="measure nothing: tell of this report"
    )
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="put the tables there, between their marks"
    )
    return parser.parse_args(argv)


def _plan(options: argparse.Namespace, loads: Loads, problems: list[str]) -> compare.Plan:
    if options.rounds < 1:
        raise BenchmarkError(f"--rounds {options.rounds}: at least one is needed")
    names = output.split("--libraries", options.libraries) or list(TRAITS)
    for name in names:
        if name not in TRAITS:
            raise BenchmarkError(f"--libraries {name}: there are {', '.join(TRAITS)}")
    chosen = output.only(options.only, cases(loads), "load")
    found = [ours()] if OURS in names else []
    return compare.Plan(
        cases=chosen,
        contenders=[*found, *peers([name for name in names if name != OURS], problems)],
        rounds=1 if options.quick else options.rounds,
        size=_QUICK if options.quick else 1.0,
    )


def _measured(
    plan: compare.Plan,
    loads: Loads,
    options: argparse.Namespace,
    problems: list[str],
    console: Console,
) -> Results:
    rows: compare.Rows = {}
    earlier = None
    if options.add and options.json is not None and options.json.exists():
        earlier = Results.of(json.loads(options.json.read_text("utf-8")))
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("", total=plan.steps())
        try:
            compare.run(
                plan, lambda title: bar.update(task, description=title, advance=1), rows, problems
            )
        except (KeyboardInterrupt, BenchmarkError) as error:
            problems.append(f"the rest: {str(error) or 'interrupted'}")
    found = [each for each in plan.contenders if isinstance(each, Library)]
    redis = shutil.which(REDIS)
    shapes = {name: str(tuned.shape) for name, tuned in loads.tuned.items()}
    packages = {each.name: environments.frozen(each.python) for each in found}
    return Results(
        reports.make(rows, plan.contenders, plan.size, earlier.report if earlier else None),
        {**(earlier.shapes if earlier else {}), **shapes},
        {**(earlier.packages if earlier else {}), **packages},
        meters.version([redis]) if redis else "",
    )


def _tell(
    results: Results, problems: Sequence[str], options: argparse.Namespace, console: Console
) -> int:
    """Print and write what came of it; the exit code."""
    every = cases(Loads())
    tables = reports.tables(results.report, every, "library")
    tables = [table for table in tables if table.row_count]
    for table in tables:
        console.print(table)
    console.print(results.about(), highlight=False, markup=False)
    for problem in problems:
        console.print(f"not measured: {problem}", style="red", highlight=False, markup=False)
    output.write_json(options.json, results.as_json(every))
    drawn = [attrs.evolve(case, is_by_server=False) for case in every if case.rounds > 1]
    picture = drawing.picture(results.report, drawn, TITLE)
    if options.json is not None:
        options.json.with_suffix(".svg").write_text(picture, "utf-8")
    if options.page is not None:
        text = "\n\n".join([results.about(), *map(page.markdown, tables)])
        page.put(options.page, text, MARKS)
        # The picture of the servers has the page's own name.
        beside = options.page.with_name(f"{options.page.stem}-jobs.svg")
        beside.write_text(picture, "utf-8")
    return 1 if problems else 0
