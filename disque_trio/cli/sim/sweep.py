"""The command that runs many seeds."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import attrs
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from disque_trio.cli.frame import INTERRUPTED, UsageError, counted
from disque_trio.cli.sim import report
from disque_trio.cli.sim.execution import REPEATABLE, Finding, Result
from disque_trio.cli.sim.options import Options
from disque_trio.cli.sim.outcomes import NOTHING_TESTED, PASSED, VIOLATED
from disque_trio.cli.sim.pool import Task, run_all
from disque_trio.cli.sim.progress import Progress
from disque_trio.cli.sim.results import Store
from disque_trio.cli.sim.sources import (
    check_engine,
    code_digest,
    plan_from,
    replay_command,
    scenario_digest,
    scenario_from,
)
from disque_trio.sim.scenario import Scenario

DETAILED = 10
"""So many failures are told with all that is known; the rest in a line each."""


def sweep(options: Options) -> int:
    """`sim sweep`."""
    # `scenarios/*.toml` should do, and the list of ablations stands among them.
    files = [path for path in options.files if Path(path).name != "ablations.toml"]
    if len(set(files)) < len(files):
        raise UsageError("a scenario is named twice")
    for path in files:
        check_engine(path, options.engine)
    scenarios = {path: scenario_from(path) for path in files}
    code = code_digest()
    versions = {
        path: f"{options.engine}-{code}-{scenario_digest(scenario)}"
        for path, scenario in scenarios.items()
    }
    store = Store(options.out, versions)
    run = _Sweep(options, scenarios, store)
    try:
        run.run()
    except KeyboardInterrupt:
        run.is_interrupted = True
    finally:
        store.close()
    return run.conclude()


@attrs.define
class _Row:
    """What came of one scenario so far."""

    scenario: Scenario
    results: dict[int, Result] = attrs.Factory(dict)

    @property
    def failed(self) -> list[Result]:
        return [result for result in self.results.values() if not result.is_ok]

    @property
    def marks(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for result in self.results.values():
            total.update(result.marks)
        return total

    @property
    def duplicates(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for result in self.results.values():
            total.update(result.duplicates)
        return total

    def total(self, field: str) -> int:
        return sum(getattr(result, field) for result in self.results.values())

    @property
    def gaps(self) -> list[str]:
        """What should have been seen and was not."""
        if not self.results:
            return []
        marks = self.marks
        missing = [mark for mark in self.scenario.expect.sometimes if not marks[mark]]
        return missing if self.total("delivered") else ["no job was delivered", *missing]


class _Sweep:
    """One sweep."""

    def __init__(self, options: Options, scenarios: dict[str, Scenario], store: Store) -> None:
        self.is_interrupted = False
        self._options = options
        self._store = store
        self._rows = {path: _Row(scenario) for path, scenario in scenarios.items()}
        self._rechecks: dict[tuple[str, int], str] = {}
        """Digests that came before those of the first run."""
        self._told = 0
        self._fresh = 0
        self._seconds = 0.0

    def run(self) -> None:
        """All seeds."""
        tasks = list(self._tasks())
        seeds = sum(not task.is_recheck for task in tasks)
        kept = sum(len(row.results) for row in self._rows.values())
        began = time.monotonic()
        with Progress(report.errors(), seeds, kept) as progress:
            done = run_all(tasks, self._options.jobs)
            try:
                for task, result in done:
                    told = self._take(task, result)
                    self._seconds = time.monotonic() - began
                    has_failed = told is not None and not told.is_ok
                    progress.step(is_seed=not task.is_recheck, is_failure=has_failed)
                    if told is not None and has_failed:
                        self._tell_failure(progress.console, task, told)
            finally:
                done.close()

    def _tasks(self) -> Iterator[Task]:
        """Pinned seeds first: those have found something before."""
        options = self._options
        share = options.recheck if options.engine in REPEATABLE else 0
        for path, row in self._rows.items():
            due = 0.0
            for seed in _seeds(row.scenario, options):
                if (known := self._store.found.get((path, seed))) is not None:
                    row.results[seed] = known
                    continue
                task = Task(path, seed, options.engine, options.limit_s)
                yield task
                due += share
                if due >= 1:
                    due -= 1
                    yield attrs.evolve(task, is_recheck=True)

    def _take(self, task: Task, result: Result) -> Result | None:
        """Keep the result; a second run of a seed counts only if it differs."""
        row, key = self._rows[task.path], (task.path, task.seed)
        first = row.results.get(task.seed)
        if task.is_recheck:
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
        row.results[task.seed] = result
        plan = None if result.is_ok else plan_from(task.path, task.seed)
        self._store.add(task.path, result, plan)
        return result

    def _tell_failure(self, console: Console, task: Task, result: Result) -> None:
        plan = plan_from(task.path, task.seed)
        command = replay_command(task.path, plan, task.engine)
        self._told += 1
        if self._told <= DETAILED:
            report.show_failure(console, result, command, result.last)
        else:
            finding = report.sentence(result.findings[0])
            console.print(f"[bold red]violated[/] {finding}; again with {escape(command)}")

    # At the end.

    def conclude(self) -> int:
        """Tell what came of it all. The exit status."""
        if self._options.is_json:
            print(json.dumps([self._facts(path) for path in self._rows]))
        else:
            self._show(report.out())
        if self.is_interrupted:
            kept = f"; kept in {self._options.out}" if self._options.out else ""
            report.errors().print(f"interrupted after {counted(self._fresh, 'seed')}{kept}")
            return INTERRUPTED
        if any(row.failed for row in self._rows.values()):
            return VIOLATED
        return NOTHING_TESTED if any(row.gaps for row in self._rows.values()) else PASSED

    def _facts(self, path: str) -> dict[str, object]:
        row = self._rows[path]
        return {
            "path": path,
            "scenario": row.scenario.name,
            "seeds": len(row.results),
            "failed": [
                {"seed": each.seed, "property": each.findings[0].property} for each in row.failed
            ],
            **{name: row.total(name) for name in ("added", "delivered", "lost", "steps")},
            "simulated_seconds": row.total("end") // 1_000_000,
            "cpu_seconds": round(sum(each.seconds for each in row.results.values()), 3),
            "duplicates": dict(row.duplicates),
            "marks": dict(row.marks),
            "gaps": row.gaps,
        }

    def _show(self, console: Console) -> None:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("scenario")
        for name in ("seeds", "failed", "jobs", "deliveries", "lost"):
            table.add_column(name, justify="right")
        table.add_column("duplicates by cause")
        for row in self._rows.values():
            failed = len(row.failed)
            table.add_row(
                escape(row.scenario.name),
                f"{len(row.results):,}",
                f"[bold red]{failed:,}[/]" if failed else "0",
                *(f"{row.total(name):,}" for name in ("added", "delivered", "lost")),
                report.causes(dict(sorted(row.duplicates.items()))),
            )
        console.print(table)
        for row in self._rows.values():
            if row.gaps and not self.is_interrupted:
                gaps = ", ".join(row.gaps)
                name = escape(row.scenario.name)
                console.print(f"[bold yellow]not seen[/] in {name}: {gaps}")
        pace = self._fresh / self._seconds if self._seconds else 0
        seeds = counted(self._fresh, "seed")
        console.print(f"{seeds} in {self._seconds:,.1f} s, {pace:,.1f} a second")


def _seeds(scenario: Scenario, options: Options) -> list[int]:
    wanted = options.seeds
    if isinstance(wanted, str):
        wanted = range(scenario.seeds.ci if wanted == "ci" else scenario.seeds.nightly)
    pinned = [pin.seed for pin in scenario.seeds.pinned] if options.has_pinned else []
    return list(dict.fromkeys([*pinned, *wanted]))


def _unrepeatable(result: Result, other: str) -> Result:
    text = f"two runs of one seed differ: digests {result.digest[:16]} and {other[:16]}"
    return attrs.evolve(result, is_ok=False, findings=(Finding("determinism", text),))
