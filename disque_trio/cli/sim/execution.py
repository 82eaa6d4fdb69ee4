"""Runs one plan in one engine, and has the checkers judge it."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Final, Protocol

import attrs

from disque_trio.sim.checkers.case import Violation
from disque_trio.sim.checkers.recorded import app_judges, summary
from disque_trio.sim.checkers.verdict import Judge, Verdict, judge
from disque_trio.sim.engines.events import NEVER
from disque_trio.sim.engines.heap import run as heap_run
from disque_trio.sim.engines.heap.run import Outcome, UnplayableError
from disque_trio.sim.engines.heap.world import FormingError
from disque_trio.sim.engines.tcp.slack import NO_PROCESSOR, with_slack
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.terminal.options import UsageError
from disque_trio.tracing.rows import Row

Watcher = Callable[[Row], None]

TAIL: Final = 24
"""How many events of a job a failure shows."""


class Engine(Protocol):
    """Runs plans."""

    def __call__(self, plan: Plan, observer: Watcher, /) -> Outcome:
        """Run it; every row goes to the observer."""


_MODULES: Final = {
    "trio": "disque_trio.sim.engines.trio.run",
    "tcp": "disque_trio.sim.engines.tcp.run",
    "apps": "disque_trio.testing.apps.run",
}
REPEATABLE: Final = ("heap", "trio")
"""Engines in which a plan always has the same history."""


def engine_called(name: str) -> Engine:
    """The engine of that name. Other engines than `heap` are imported only when asked for."""
    if name == "heap":
        return heap_run.simulate
    try:
        found: Engine = import_module(_MODULES[name]).simulate
    except ModuleNotFoundError as error:
        raise UsageError(f"there is no {name} engine in this installation: {error}") from None
    return found


def engine_for(plan: Plan, name: str) -> Engine:
    """The engine of that name; of a plan with an app the one that runs apps on the heap."""
    return engine_called("apps" if plan.apps is not None and name == "heap" else name)


@attrs.frozen
class Finding:
    """One thing that is wrong."""

    property: str
    text: str
    job: str = ""
    time: int = 0
    node: str = ""


@attrs.frozen(kw_only=True)
class Result:
    """The result of one run: small enough to keep for every seed."""

    scenario: str
    seed: int
    engine: str
    is_ok: bool
    findings: tuple[Finding, ...] = ()
    duplicates: dict[str, int] = attrs.Factory(dict)
    """By cause."""
    lost: int = 0
    marks: dict[str, int] = attrs.Factory(dict)
    """Those that were hit."""
    added: int = 0
    delivered: int = 0
    """Deliveries, repeated ones included."""
    steps: int = 0
    end: int = 0
    """Microseconds."""
    digest: str = ""
    seconds: float = 0.0
    """Of this process."""
    last: tuple[str, ...] = ()
    """The last events of the job that a sweep's failure is about."""


@attrs.frozen
class Difference:
    """The first row in which a new run of a plan differs from its trace, as one line each."""

    before: tuple[str, ...]
    """The rows before it, which are the same in both."""
    recorded: str
    again: str


@attrs.frozen
class Run:
    """A result with the verdict, which is None if the run failed before."""

    result: Result
    verdict: Verdict | None
    is_cut: bool = False
    """Is it of a trace that ends before its run did? The rest could not be judged."""
    difference: Difference | None = None
    """Of a trace whose plan runs otherwise now."""


class _Counter:
    """Counts jobs that were confirmed."""

    def __init__(self) -> None:
        self.added = 0

    def see(self, row: Row) -> None:
        if row.kind == "add.ok":
            self.added += 1


def execute(
    plan: Plan,
    engine: str = "heap",
    watchers: Iterable[Watcher] = (),
    run: Engine | None = None,
    *,
    is_live: bool = False,
    stops: bool = False,
) -> Run:
    """Run it. A machine that raises fails the run, as a lost job does; what was found before it is
    in the result, too. With `stops` it ends at the first violation."""
    run = run or engine_for(plan, engine)
    began = time.process_time() if engine in REPEATABLE else time.monotonic()
    if engine in REPEATABLE:
        judging = judge(plan, is_live=is_live)
    else:
        judging = judge(with_slack(plan), is_live=is_live, no_processor=NO_PROCESSOR)
    counter = _Counter()
    of_app = app_judges(plan)
    stop = [_Stop(judging).see] if stops else []
    seers = (judging.see, counter.see, *(each.see for each in of_app), *watchers, *stop)

    def observe(row: Row) -> None:
        for see in seers:
            see(row)

    outcome, verdict, crash = Outcome("", 0, 0), None, None
    try:
        outcome = run(plan, observe)
        verdict = judging.finish()
        for each in of_app:
            verdict = each.joined(verdict)
    except UnplayableError as error:
        raise UsageError(str(error)) from None
    except _StoppedError:
        pass
    except FormingError as error:
        crash = Finding("forming", str(error))
    except OverdueError as error:
        crash = Finding("hang", str(error))
    except Exception as error:  # S12: a machine never raises
        crash = Finding("S12", summary(error))
    ended = time.process_time() if engine in REPEATABLE else time.monotonic()
    result = Result(
        scenario=plan.scenario,
        seed=plan.seed,
        engine=engine,
        added=counter.added,
        steps=outcome.steps,
        end=outcome.end,
        digest=outcome.digest,
        seconds=round(ended - began, 3),
        **(_judged(verdict) if verdict and not crash else _crashed(judging, crash)),
    )
    return Run(result, verdict)


class OverdueError(BaseException):
    """The run takes longer than its limit. A BaseException, so that nothing on the way takes it for
    a failure of a machine."""


class _StoppedError(BaseException):
    """A violation was found."""


@attrs.frozen
class _Stop:
    """Ends the run at the first violation."""

    judging: Judge

    def see(self, _row: Row) -> None:
        if self.judging.violated is not None:
            raise _StoppedError


def _crashed(judging: Judge, crash: Finding | None) -> dict[str, Any]:
    found = _findings(judging.case.violations)
    return {"is_ok": False, "findings": (crash, *found) if crash else found}


def _findings(violations: Iterable[Violation]) -> tuple[Finding, ...]:
    return tuple(
        Finding(each.property, each.detail, each.job, each.time, each.node) for each in violations
    )


def _judged(verdict: Verdict) -> dict[str, Any]:
    return {
        "is_ok": verdict.ok,
        "findings": _findings(verdict.violations),
        "duplicates": {cause: count for cause, count in verdict.duplicates.items() if count},
        "lost": verdict.lost,
        "delivered": verdict.deliveries,
        "marks": {mark: count for mark, count in verdict.marks.items() if count},
    }


def judged(plan: Plan, rows: Iterable[Row], *, is_live: bool) -> Run:
    """The verdict on a history that was recorded before."""

    def replay(_plan: Plan, observer: Watcher) -> Outcome:
        end = steps = 0
        for row in rows:
            observer(row)
            end, steps = row.time, steps + 1
        return Outcome("", steps, end)

    return execute(plan, "heap", run=replay, is_live=is_live)


class Tail:
    """Keeps the last rows about the job of a finding, up to when it was found."""

    def __init__(self, finding: Finding) -> None:
        self._job = finding.job
        self._until = finding.time or NEVER
        self.rows: deque[Row] = deque(maxlen=TAIL)

    def see(self, row: Row) -> None:
        """Keep it if it is about the job."""
        if row.time > self._until:
            return
        if row.job == self._job or (not row.job and self._job in row.detail):
            self.rows.append(row)


def last_events(plan: Plan, finding: Finding, run: Engine) -> list[Row]:
    """The last events of the job, from another run of the plan."""
    tail = Tail(finding)
    try:
        run(plan, tail.see)
    except Exception:  # it failed before, too: the rows until then are what is wanted
        return list(tail.rows)
    return list(tail.rows)
