"""The command that runs many seeds."""

import os
import time
import uuid
from collections.abc import Generator, Iterator
from contextlib import closing
from importlib import import_module

import attrs
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from disque_trio import __version__
from disque_trio.cli.frame import INTERRUPTED
from disque_trio.cli.sim import guiding, report, spark
from disque_trio.cli.sim.collector import CollectorOptions, first_kept
from disque_trio.cli.sim.execution import REPEATABLE, Finding, Result
from disque_trio.cli.sim.options import Sweep
from disque_trio.cli.sim.outcomes import NOTHING_TESTED, PASSED, VIOLATED
from disque_trio.cli.sim.pool import Done, Task, run_all
from disque_trio.cli.sim.progress import Progress
from disque_trio.cli.sim.results import DirectoryStore, Key, ResultStore
from disque_trio.cli.sim.sources import (
    check_engine,
    code_digest,
    plan_from,
    replay_command,
    scenario_digest,
    scenario_from,
)
from disque_trio.cli.sim.tally import Tally
from disque_trio.pipeline import session
from disque_trio.pipeline.errors import INSTALL, PipelineError
from disque_trio.pipeline.location import lake_path, local_path
from disque_trio.sim.scenarios.scenario import Scenario
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import UsageError
from disque_trio.terminal.output import say_json

DETAILED = 10
"""How many failures are shown in full; the rest take a line each."""


def sweep(options: Sweep) -> int:
    """`sim sweep`."""
    guiding.check(options)
    if options.is_guided:
        return guiding.guided(options)
    if options.trace_share and options.lake is None:
        raise UsageError("--trace-share needs --lake, for the rows")
    if options.spark_settings and options.spark is None:
        raise UsageError("--spark-conf needs --spark")
    try:
        if options.spark is not None:
            session.check_master(options.spark)
        run = _Sweep(options)
        run.run()
    except PipelineError as error:
        raise UsageError(str(error)) from None
    return run.conclude()


def _scenarios(options: Sweep) -> dict[str, Scenario]:
    files = options.files
    if len(set(files)) < len(files):
        raise UsageError("a scenario is given twice")
    for path in files:
        check_engine(path, options.engine)
    return {path: scenario_from(path) for path in files}


def _versions(options: Sweep, scenarios: dict[str, Scenario]) -> dict[str, str]:
    code = code_digest()
    return {
        path: f"{__version__}-{options.engine}-{code}-{scenario_digest(scenario)}"
        for path, scenario in scenarios.items()
    }


class _Sweep:
    """One sweep."""

    def __init__(self, options: Sweep) -> None:
        self._options = options
        self._scenarios = _scenarios(options)
        self._tallies = {path: Tally(each) for path, each in self._scenarios.items()}
        self._versions = _versions(options, self._scenarios)
        self._name = f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:6]}"
        self._stores = self._open()
        self._expected: dict[Key, Result | None] = {}
        """Seeds that are run twice, with the result of the first run."""
        self._rechecks: dict[Key, str] = {}
        """Digests of second runs that finished before the first."""
        self._reported = 0
        self._fresh = 0
        self._seconds = 0.0
        self._ending = ""

    def _open(self) -> list[ResultStore]:
        """Where results are stored. Seeds with a result in the first store are not run again."""
        options = self._options
        stores: list[ResultStore] = []
        if options.lake is not None:
            try:
                module = import_module("disque_trio.cli.sim.lakestore")
            except ModuleNotFoundError as error:
                raise UsageError(
                    f"--lake needs pyarrow and deltalake ({error}): {INSTALL}"
                ) from None
            store = module.LakeStore(options.lake, self._name, self._versions, self._scenarios)
            stores.append(store)
        if options.out is not None:
            stores.append(DirectoryStore(local_path(options.out), self._versions))
        return stores

    def run(self) -> None:
        """Run all seeds, or until there are enough failures."""
        try:
            self._run()
        except KeyboardInterrupt:
            self._ending = "interrupted"
        finally:
            self._close_stores()

    def _close_stores(self) -> None:
        for store in self._stores:
            store.close()

    def _run(self) -> None:
        wanted = {path: _seeds(each, self._options) for path, each in self._scenarios.items()}
        self._recall(wanted)
        kept = sum(len(tally.seeds) for tally in self._tallies.values())
        # Those known to take long come first: one that begins last would hold up the end.
        tasks = sorted(self._tasks(wanted), key=lambda task: -task.expected_s)
        seeds = sum(not task.is_recheck for task in tasks)
        began = time.monotonic()
        with Progress(report.errors(), seeds, kept) as progress:
            results = self._results(tasks, progress)
            try:
                for done in results:
                    self._see(done, progress)
                    self._seconds = time.monotonic() - began
                    if self._ending and done.ends_piece:
                        return
            finally:
                # Spark may be slow to end, and be interrupted: store the results first.
                with closing(results):
                    self._close_stores()

    def _see(self, done: Done, progress: Progress) -> None:
        """Store it, and report a failure unless the sweep is ending: then the rest of the piece
        only completes what the lake has of it."""
        result = self._take(done)
        has_failed = result is not None and not result.is_ok
        progress.step(is_seed=not done.task.is_recheck, is_failure=has_failed)
        if result is not None and has_failed and not self._ending:
            self._report_failure(progress.console, done.task, result)
            if self._reported == self._options.most_failures:
                self._ending = "stopped"

    def _recall(self, wanted: dict[str, list[int]]) -> None:
        """Count the results of earlier sweeps."""
        if self._stores:
            asked = {path: set(seeds) for path, seeds in wanted.items()}
            for path, result in self._stores[0].kept():
                if result.seed in asked[path]:
                    self._tallies[path].add(result)

    def _results(self, tasks: list[Task], progress: Progress) -> Generator[Done, None, None]:
        options = self._options
        if options.spark is None:
            return run_all(tasks, options.jobs or os.cpu_count() or 1)

        def ready(processors: int) -> None:
            progress.begin()
            progress.console.print(f"Spark runs at {options.spark}, processors: {processors}")

        settings = dict(options.spark_settings)
        return spark.run_all(
            tasks, self._scenarios, options.spark, settings, ready, progress.console.print
        )

    def _tasks(self, wanted: dict[str, list[int]]) -> Iterator[Task]:
        options = self._options
        share = options.recheck if options.engine in REPEATABLE else 0
        costs = self._stores[0].costs(options.engine) if self._stores else {}
        for path, seeds in wanted.items():
            collecting = self._collector_options(path, seeds)
            due = 0.0
            for seed in seeds:
                if seed in self._tallies[path].seeds:
                    continue
                task = Task(
                    path,
                    seed,
                    options.engine,
                    options.limit_s,
                    collecting=collecting,
                    expected_s=costs.get((path, seed), 0.0),
                )
                yield task
                due += share
                if due >= 1:
                    due -= 1
                    self._expected[path, seed] = None
                    yield attrs.evolve(task, is_recheck=True, collecting=None)

    def _collector_options(self, path: str, seeds: list[int]) -> CollectorOptions | None:
        options = self._options
        if options.lake is None:
            return None
        first = first_kept(seeds, self._scenarios[path].name, options.trace_share)
        return CollectorOptions(
            lake_path(options.lake), self._name, self._versions[path], options.trace_share, first
        )

    def _take(self, done: Done) -> Result | None:
        """Store the result; a second run of a seed counts only if it differs."""
        task, result = done.task, done.result
        key = (task.path, task.seed)
        if task.is_recheck:
            first = self._expected.pop(key)
            if first is None:
                self._rechecks[key] = result.digest
                return None
            if first.digest == result.digest or not first.is_ok:
                return None
            result = _unrepeatable(first, result.digest)
        else:
            other = self._rechecks.pop(key, result.digest)
            self._fresh += 1
            if other != result.digest and result.is_ok:
                result = _unrepeatable(result, other)
            if key in self._expected:
                self._expected[key] = result
        self._tallies[task.path].add(result)
        for store in self._stores:
            store.add(task.path, attrs.evolve(done, result=result))
        return result

    def _report_failure(self, console: Console, task: Task, result: Result) -> None:
        plan = plan_from(task.path, task.seed)
        command = replay_command(task.path, plan, task.engine)
        self._reported += 1
        if self._reported <= DETAILED:
            report.show_failure(console, result, command, result.last)
        else:
            finding = report.sentence(result.findings[0])
            console.print(f"[bold red]violated[/] {finding}; again with {escape(command)}")

    # At the end.

    def conclude(self) -> int:
        """Show the totals. The exit status."""
        options = self._options
        if options.is_json:
            say_json([self._facts(path) for path in self._tallies])
        else:
            self._show(report.out())
        if elsewhere := max((store.elsewhere for store in self._stores), default=0):
            report.errors().print(
                f"{counted(elsewhere, 'seed')} also stored by another sweep, and counted once"
            )
        if self._ending:
            places = " and ".join(place for place in (options.lake, options.out) if place)
            kept = f"; kept in {places}" if places else ""
            report.errors().print(f"{self._ending} after {counted(self._fresh, 'seed')}{kept}")
        if self._ending == "interrupted":
            return INTERRUPTED
        if any(tally.failed for tally in self._tallies.values()):
            return VIOLATED
        for tally in self._tallies.values():
            if tally.delivers_nothing or (options.is_mark_required and tally.missing):
                return NOTHING_TESTED
        return PASSED

    def _facts(self, path: str) -> dict[str, object]:
        tally = self._tallies[path]
        return {
            "path": path,
            "scenario": tally.scenario.name,
            "seeds": len(tally.seeds),
            "failed": [
                {"seed": each.seed, "property": each.findings[0].property} for each in tally.failed
            ],
            **{name: tally.sums[name] for name in ("added", "delivered", "lost", "steps")},
            "simulated_seconds": tally.sums["end"] // 1_000_000,
            "cpu_seconds": round(tally.seconds, 3),
            "duplicates": dict(tally.duplicates),
            "marks": dict(tally.marks),
            "gaps": tally.gaps,
        }

    def _show(self, console: Console) -> None:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("scenario")
        for name in ("seeds", "failed", "jobs", "deliveries", "lost"):
            table.add_column(name, justify="right")
        table.add_column("duplicates by cause")
        for tally in self._tallies.values():
            failed = len(tally.failed)
            table.add_row(
                escape(tally.scenario.name),
                f"{len(tally.seeds):,}",
                f"[bold red]{failed:,}[/]" if failed else "0",
                *(f"{tally.sums[name]:,}" for name in ("added", "delivered", "lost")),
                report.causes(dict(sorted(tally.duplicates.items()))),
            )
        console.print(table)
        for tally in self._tallies.values():
            if tally.gaps and not self._ending:
                gaps = ", ".join(tally.gaps)
                name = escape(tally.scenario.name)
                style = "bold yellow" if self._options.is_mark_required else "yellow"
                console.print(f"[{style}]not seen[/] in {name}: {gaps}")
        pace = self._fresh / self._seconds if self._seconds else 0
        seeds = counted(self._fresh, "seed")
        console.print(f"{seeds} in {self._seconds:,.1f} s, {pace:,.1f} a second")


def _seeds(scenario: Scenario, options: Sweep) -> list[int]:
    wanted = options.seeds
    if isinstance(wanted, str):
        wanted = range(scenario.seeds.ci if wanted == "ci" else scenario.seeds.nightly)
    return list(wanted)


def _unrepeatable(result: Result, other: str) -> Result:
    text = f"two runs of one seed differ: digests {result.digest[:16]} and {other[:16]}"
    return attrs.evolve(result, is_ok=False, findings=(Finding("determinism", text),))
