"""`sim sweep --guided`: seeds that are chosen by what earlier ones have shown (docs/guided.md)."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
from rich.status import Status
from rich.table import Table

from disque_trio.cli.frame import INTERRUPTED, duration
from disque_trio.cli.sim import report
from disque_trio.cli.sim.corpus import Corpus
from disque_trio.cli.sim.execution import Result
from disque_trio.cli.sim.options import Sweep
from disque_trio.cli.sim.outcomes import NOTHING_TESTED, PASSED, VIOLATED
from disque_trio.cli.sim.pool import Play, Played, Runner
from disque_trio.cli.sim.sources import check_engine, code_digest, scenario_digest, scenario_from
from disque_trio.sim.guided.search import FRESH, Candidate, Search
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.scenario import Scenario
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import UsageError
from disque_trio.terminal.output import say_json

BATCH: Final = 8
"""So many candidates are made before any of them runs, whatever the number of processes: a search
is the same with any."""
MINUTES: Final = 10
_BLIND: Final = FRESH // 2
"""Blind seeds are not those that a guided sweep takes from its scenarios."""
_POINTS: Final = 8
"""Lines of the comparison."""
_PAUSE_S: Final = 30.0


@attrs.define
class Curve:
    """What one of the two sweeps has shown, by processor time."""

    seconds: float = 0.0
    runs: int = 0
    failed: int = 0
    delivered: int = 0
    points: list[tuple[float, int, int]] = attrs.Factory(list)
    """Seconds, runs and elements of signatures after each batch."""

    def count(self, result: Result) -> None:
        """A run is over."""
        self.seconds += result.seconds
        self.runs += 1
        self.failed += not result.is_ok
        self.delivered += result.delivered

    def end_batch(self, elements: int) -> None:
        """A batch is over."""
        self.points.append((round(self.seconds, 1), self.runs, elements))

    def at(self, seconds: float) -> tuple[int, int]:
        """Runs and elements after so many seconds."""
        before = [point for point in self.points if point[0] <= seconds]
        return before[-1][1:] if before else (0, 0)

    @property
    def facts(self) -> dict[str, Any]:
        """For JSON."""
        elements = self.points[-1][2] if self.points else 0
        hours = self.seconds / 3600
        return {
            "runs": self.runs,
            "failed": self.failed,
            "cpu_seconds": round(self.seconds, 1),
            "signatures": elements,
            "signatures_per_hour": round(elements / hours) if hours else 0,
            "curve": self.points,
        }


def guided(options: Sweep) -> int:
    """`sim sweep --guided`. The exit status."""
    sweep = _Guided(options)
    try:
        sweep.run()
    except KeyboardInterrupt:
        sweep.conclude()
        report.errors().print(f"interrupted; the corpus {options.corpus} is kept")
        return INTERRUPTED
    return sweep.conclude()


def _scenarios(options: Sweep) -> dict[str, Scenario]:
    found: dict[str, Scenario] = {}
    for path in options.files:
        check_engine(path, options.engine)
        scenario = scenario_from(path)
        if scenario.apps is not None or scenario.expect.must_lose:
            what = "runs an app" if scenario.apps is not None else "must lose jobs"
            raise UsageError(f"{path} {what}: --guided is for other scenarios")
        if scenario.name in found:
            raise UsageError(f"two scenarios have the name {scenario.name}")
        found[scenario.name] = scenario
    return found


class _Guided:
    """One sweep, and a blind one beside it if that is asked for."""

    def __init__(self, options: Sweep) -> None:
        assert options.corpus is not None
        self._options = options
        self._scenarios = _scenarios(options)
        self._search = Search(self._scenarios, options.seed)
        identity = {
            "scenarios": {name: scenario_digest(each) for name, each in self._scenarios.items()},
            "seed": options.seed,
            "engine": options.engine,
        }
        self._corpus = Corpus(Path(options.corpus), identity, code_digest())
        self._corpus.load(self._search)
        if options.is_compared and self._corpus.next:
            raise UsageError(
                "--compare needs a new corpus, so that both searches start without one"
            )
        self._limit = 60 * (options.minutes or MINUTES)
        self._ours, self._blind = Curve(), Curve()
        self._before = len(self._search.counts)
        self._blind_elements: dict[str, None] = {}
        self._console = report.errors()
        self._printed_at = time.monotonic()

    def run(self) -> None:
        """Until the time is over, or there are enough failures."""
        curves = [self._ours, *([self._blind] if self._options.is_compared else [])]
        with (
            Runner(self._options.jobs) as runner,
            Status("guided: begins", console=self._console) as status,
        ):
            while True:
                curve = min(curves, key=lambda each: each.seconds)
                if curve.seconds >= self._limit or self._has_enough():
                    return
                if curve is self._ours:
                    self._guided_batch(runner)
                else:
                    self._blind_batch(runner)
                self._show_progress(status)

    def _has_enough(self) -> bool:
        most = self._options.most_failures
        return most is not None and self._ours.failed + self._blind.failed >= most

    def _guided_batch(self, runner: Runner) -> None:
        began = time.process_time()
        start = self._corpus.next
        candidates = self._search.candidates(start, BATCH)
        made = time.process_time() - began
        plays = [self._play(each) for each in candidates]
        for candidate, played in zip(candidates, runner.all(plays), strict=True):
            self._ours.count(played.result)
            new = self._search.tell(candidate, played.signature, played.result.steps)
            if new:
                self._corpus.add(candidate, len(new))
            self._see_failure(candidate, played)
        self._ours.seconds += made
        self._ours.end_batch(len(self._search.counts))
        self._corpus.next = start + BATCH
        self._corpus.save(self._search)

    def _blind_batch(self, runner: Runner) -> None:
        candidates = list(self._blind_candidates())
        plays = [self._play(each) for each in candidates]
        for candidate, played in zip(candidates, runner.all(plays), strict=True):
            self._blind.count(played.result)
            self._blind_elements.update(dict.fromkeys(played.signature))
            self._see_failure(candidate, played)
        self._blind.end_batch(len(self._blind_elements))

    def _blind_candidates(self) -> Iterator[Candidate]:
        names = list(self._scenarios)
        for number in range(self._blind.runs, self._blind.runs + BATCH):
            name = names[number % len(names)]
            seed = self._options.seed * FRESH + _BLIND + number
            plan = expand(self._scenarios[name], seed)
            yield Candidate(_BLIND + number, name, plan, "", f"seed {seed}")

    def _play(self, candidate: Candidate) -> Play:
        return Play(candidate.plan, self._options.engine, self._options.limit_s)

    def _see_failure(self, candidate: Candidate, played: Played) -> None:
        result = played.result
        if result.is_ok:
            return
        finding = result.findings[0]
        note = f"{candidate.how}; {finding.property}: {finding.text}"
        path = self._corpus.add_failure(candidate, note)
        report.show_failure(self._console, result, f"disque-trio sim run {path}", ())

    def _show_progress(self, status: Status) -> None:
        blind = f", blind {self._blind.facts['signatures']:,}" if self._blind.runs else ""
        text = (
            f"guided: {self._ours.seconds:,.0f} of {self._limit:,.0f} s, "
            f"{counted(self._ours.runs, 'run')}, {counted(len(self._search.kept), 'plan')} kept, "
            f"signatures {len(self._search.counts):,}{blind}"
        )
        status.update(text)
        if not self._console.is_terminal and time.monotonic() - self._printed_at >= _PAUSE_S:
            self._printed_at = time.monotonic()
            self._console.print(text)

    # At the end.

    def conclude(self) -> int:
        """Show what was found. The exit status."""
        curves = {"guided": self._ours}
        if self._options.is_compared:
            curves["blind"] = self._blind
        if self._options.is_json:
            say_json({
                **{name: curve.facts for name, curve in curves.items()},
                "corpus": self._options.corpus,
                "kept": len(self._search.kept),
                "signatures_before": self._before,
            })  # fmt: skip
        else:
            self._show(curves)
        if any(curve.failed for curve in curves.values()):
            return VIOLATED
        return PASSED if any(curve.delivered for curve in curves.values()) else NOTHING_TESTED

    def _show(self, curves: dict[str, Curve]) -> None:
        console = report.out()
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("processor time", justify="right")
        for name in curves:
            table.add_column(f"{name}: runs", justify="right")
            table.add_column("signatures", justify="right")
        end = max(curve.seconds for curve in curves.values())
        for number in range(1, _POINTS + 1):
            at = end * number / _POINTS
            cells = (f"{figure:,}" for curve in curves.values() for figure in curve.at(at))
            table.add_row(duration(at), *cells)
        console.print(table)
        console.print(
            f"{counted(len(self._search.kept), 'plan')} in {self._options.corpus}; "
            f"{counted(len(self._search.counts), 'signature')}, "
            f"{self._before:,} of them from earlier sweeps"
        )


def check(options: Sweep) -> None:
    """Refuse options that do not go together."""
    only = {
        "--corpus": options.corpus is not None,
        "--minutes": options.minutes is not None,
        "--compare": options.is_compared,
        "--seed": options.seed != 0,
    }
    if not options.is_guided:
        _refuse((name for name, is_given in only.items() if is_given), "is for --guided")
        return
    if options.corpus is None:
        raise UsageError("--guided needs --corpus, a directory for its plans")
    other = {
        "--seeds": options.seeds != "ci",
        "--spark": options.spark is not None,
        "--out": options.out is not None,
        "--lake": options.lake is not None,
        "--require-marks": options.is_mark_required,
    }
    _refuse((name for name, is_given in other.items() if is_given), "is not for --guided")


def _refuse(names: Iterable[str], why: str) -> None:
    for name in names:
        raise UsageError(f"{name} {why}")
