"""The commands about one run: run, replay, expand and draw."""

from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from itertools import zip_longest
from typing import Any

import attrs
from rich.markup import escape

from disque_trio.cli.frame import cannot_write, check_folder
from disque_trio.cli.sim import report
from disque_trio.cli.sim.execution import (
    REPEATABLE,
    TAIL,
    Difference,
    Finding,
    Run,
    Tail,
    Watcher,
    engine_for,
    execute,
    judged,
)
from disque_trio.cli.sim.options import Draw, Expand, Replay
from disque_trio.cli.sim.outcomes import NOTHING_TESTED, PASSED, VIOLATED
from disque_trio.cli.sim.sources import (
    TRACES,
    check_engine,
    check_writable,
    is_trace,
    plan_from,
    replay_command,
    write_text,
)
from disque_trio.sim.histories.of_runs import RunHistory
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.traces import files as traces_files
from disque_trio.sim.traces import merge_live
from disque_trio.sim.traces.files import TraceError
from disque_trio.terminal.options import UsageError
from disque_trio.terminal.output import say, say_lines
from disque_trio.tracing.rows import Row
from disque_trio.tracing.sampling import of_chosen


def run(options: Replay) -> int:
    """`sim run`."""
    if len(options.files) == 1:
        return _run(options, options.files[0])
    if any(each is not None for each in (options.html, options.trace, options.history)):
        raise UsageError("--html, --trace and --history need a single run: name one file")
    statuses = {_run(options, path) for path in options.files}
    return next((one for one in (VIOLATED, NOTHING_TESTED) if one in statuses), PASSED)


def _run(options: Replay, path: str) -> int:
    plan = plan_from(path, options.seed)
    check_engine(path, options.engine)
    check_writable(options.html)
    rows: list[Row] = []
    is_kept = options.html is not None or options.engine not in REPEATABLE
    done = _traced(plan, options, [rows.append] if is_kept else [])
    return _finish(options, plan, done, rows, replay_command(path, plan, options.engine))


def _recorded(plan: Plan, options: Replay, watchers: list[Watcher]) -> Run:
    """Run it, and write the history of its clients if there is a file for it."""
    if options.history is None:
        return execute(plan, options.engine, watchers)
    if options.engine not in REPEATABLE:
        raise UsageError(f"--history is for the engines {' and '.join(REPEATABLE)}")
    try:
        with open(options.history, "wb") as file:
            history = RunHistory(plan, file.write)
            engine: Any = engine_for(plan, options.engine)
            play = partial(engine, prepare=history.prepare)
            done = execute(plan, options.engine, [*watchers, history.see], run=play)
            history.close()
    except OSError as error:
        raise cannot_write(options.history, error) from None
    return done


def _traced(plan: Plan, options: Replay, watchers: list[Watcher]) -> Run:
    """Run it, and write every row to the trace file if there is one."""
    if options.trace is None:
        return _recorded(plan, options, watchers)
    if not options.trace.endswith(TRACES):
        raise UsageError(f"{options.trace}: a trace ends in {', '.join(TRACES)}")
    check_folder(options.trace)
    try:
        writer = traces_files.create(options.trace, plan)
    except TraceError as error:
        raise UsageError(str(error)) from None
    trace = _TraceObserver(writer)
    try:
        done = _recorded(plan, options, [*watchers, trace.see])
    finally:
        trace.close()
    if trace.error is not None:
        reason = trace.error.strerror or trace.error
        raise UsageError(f"cannot write {options.trace}: {reason}")
    return done


class _TraceObserver:
    """Writes a trace. Keeps its error to itself: a full disk is no failure of the observed node."""

    def __init__(self, writer: traces_files.TraceWriter) -> None:
        self._writer = writer
        self.error: OSError | None = None

    def see(self, row: Row) -> None:
        """Write a row."""
        if self.error is None:
            try:
                self._writer.write((row,))
            except OSError as error:
                self.error = error

    def close(self) -> None:
        """Close the file."""
        try:
            self._writer.close()
        except OSError as error:
            self.error = self.error or error


def _finish(options: Replay, plan: Plan, done: Run, rows: list[Row], command: str) -> int:
    """Draw and print the result. The exit status."""
    result = done.result
    if options.html is not None:
        write_text(options.html, _picture(plan, rows, done, command))
    finding = report.about_a_job(result)
    history: list[str] = []
    if finding is not None:
        rows = rows or _again(options, plan)
        history = _job_history(plan, rows, done, finding)
        result = attrs.evolve(result, last=_last(rows, finding))
    unseen = [mark for mark in plan.expect.sometimes if not result.marks.get(mark)]
    if options.is_json:
        facts: dict[str, Any] = {"not_seen": unseen} if unseen else {}
        if done.is_cut:
            facts["is_cut"] = True
        if done.difference is not None:
            facts["difference"] = attrs.asdict(done.difference)
        say(report.as_json(result, replay=command, **facts))
    else:
        console = report.out()
        report.show_result(console, result, unseen)
        if not result.is_ok:
            report.show_failure(console, result, command, result.last, history)
        elif not result.delivered:
            console.print("[bold yellow]nothing tested[/]: no job was delivered")
        if done.is_cut:
            console.print("[bold yellow]the trace ends before its run[/]: the rest was not checked")
        _show_difference(done.difference)
    if not result.is_ok:
        return VIOLATED
    return PASSED if result.delivered and not done.is_cut else NOTHING_TESTED


def _again(options: Replay, plan: Plan) -> list[Row]:
    """The rows of a run, from another run: rows are not kept until a run has failed."""
    rows: list[Row] = []
    execute(plan, options.engine, [rows.append])
    return rows


def _last(rows: Iterable[Row], finding: Finding) -> tuple[str, ...]:
    tail = Tail(finding)
    for row in rows:
        tail.see(row)
    return tuple(report.event(row) for row in tail.rows)


def _job_history(plan: Plan, rows: list[Row], done: Run, finding: Finding) -> list[str]:
    """What became of the job, with a column for each node."""
    seen = [row for row in rows if not finding.time or row.time <= finding.time]
    terminal = import_module("disque_trio.sim.picture.terminal")
    lines: list[str] = terminal.lines(plan, seen, done.verdict, job=finding.job, last=TAIL)
    return lines


def _picture(plan: Plan, rows: list[Row], done: Run, command: str) -> str:
    """Import the picture only when needed: the module reads the page's files."""
    picture = import_module("disque_trio.sim.picture.page")
    page: str = picture.render(plan, rows, done.verdict, replay=command)
    return page


def expand_(options: Expand) -> int:
    """`sim expand`."""
    (path,) = options.files
    plan = plan_from(path, options.seed)
    text = plan_file.dump(plan, f"{path}, seed {plan.seed}")
    if options.out is None:
        say_lines(text)
    else:
        write_text(options.out, text)
    return PASSED


def draw(options: Draw) -> int:
    """`sim draw`."""
    if not is_trace(options.files[0]):
        check_writable(options.html)
    plan, page = drawn(options.files, options.seed, options.engine)
    target = options.html or f"{plan.scenario}-{plan.seed}.html"
    write_text(target, page)
    report.out().print(f"drawn into {target}")
    return PASSED


def drawn(paths: Sequence[str], seed: int | None, engine: str) -> tuple[Plan, str]:
    """The plan and the picture of a run. Raises `UsageError`, as `recorded` does."""
    found = recorded(paths, seed, engine)
    return found.plan, _picture(found.plan, found.rows, found.done, found.command)


@attrs.frozen
class Recorded:
    """A run with what is said of it."""

    plan: Plan
    rows: list[Row]
    done: Run
    command: str
    """Shows it again."""


def recorded(paths: Sequence[str], seed: int | None, engine: str) -> Recorded:
    """A run: of traces, or of a scenario or plan, which is played. Raises `UsageError`."""
    path = paths[0]
    if is_trace(path):
        if seed is not None:
            raise UsageError(f"{path} has its own seed: omit --seed")
        plan, rows, sample = _history(paths)
        command = f"disque-trio sim replay {' '.join(paths)}"
        return Recorded(plan, rows, _judge(plan, rows, sample), command)
    plan, rows = plan_from(path, seed), []
    check_engine(path, engine)
    done = execute(plan, engine, [rows.append])
    return Recorded(plan, rows, done, replay_command(path, plan, engine))


# Replaying.


def replay(options: Replay) -> int:
    """`sim replay`."""
    if not is_trace(options.files[0]):
        if len(options.files) > 1:
            raise UsageError("give one plan")
        return run(options)
    if options.seed is not None:
        raise UsageError(f"{options.files[0]} has its own seed: omit --seed")
    check_writable(options.html)
    plan, rows, sample = _history(options.files)
    done = _judge(plan, rows, sample)
    if plan.scenario != merge_live.SCENARIO:
        done = attrs.evolve(done, difference=_first_difference(rows, plan, options.engine))
    return _finish(options, plan, done, rows, f"disque-trio sim replay {' '.join(options.files)}")


def _history(paths: Iterable[str]) -> tuple[Plan, list[Row], int]:
    """The rows of the traces, in order of time, their plan, and of how many jobs they have one:
    those that all traces have."""
    try:
        traces = [traces_files.read(path) for path in paths]
        plans = [trace.plan for trace in traces if trace.plan is not None]
        if plans and len(traces) > 1:
            raise UsageError("give one trace of a simulated run")
        if plans:
            return plans[0], list(traces[0].rows), 1
        sample = max(trace.sample for trace in traces)
        rows = merge_live.history([of_chosen(trace.rows, sample) for trace in traces]).rows
    except TraceError as error:
        raise UsageError(str(error)) from None
    return merge_live.plan_of(rows), rows, sample


def _judge(plan: Plan, rows: list[Row], sample: int) -> Run:
    is_live = plan.scenario == merge_live.SCENARIO
    done = judged(plan, rows, is_live=is_live)
    # A run that was killed, or whose disk was full, leaves the rows before.
    is_cut = not is_live and not any(row.kind == "end" for row in rows)
    source = "trace" if sample == 1 else f"trace of one job in {sample:,}"
    return attrs.evolve(done, result=attrs.evolve(done.result, engine=source), is_cut=is_cut)


def _first_difference(rows: list[Row], plan: Plan, engine: str) -> Difference | None:
    """Where a new run differs from the recorded history, if it does."""
    again: list[Row] = []
    execute(plan, engine, [again.append])
    for number, (old, new) in enumerate(zip_longest(rows, again)):
        if old != new:
            before = tuple(report.event(row) for row in rows[max(0, number - 3) : number])
            recorded, now = (report.event(row) if row else "the end" for row in (old, new))
            return Difference(before, recorded, now)
    return None


def _show_difference(difference: Difference | None) -> None:
    if difference is None:
        return
    lines = [f"    {row}" for row in difference.before]
    lines += [f"  - {difference.recorded}", f"  + {difference.again}"]
    text = "\n".join(escape(line) for line in lines)
    report.out().print(f"[bold yellow]the plan runs differently now[/]\n{text}")
