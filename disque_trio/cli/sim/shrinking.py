"""The command that shrinks a failing plan."""

from rich.status import Status

from disque_trio.cli.sim import report
from disque_trio.cli.sim.execution import Finding, Result, execute
from disque_trio.cli.sim.options import Shrink
from disque_trio.cli.sim.outcomes import PASSED
from disque_trio.cli.sim.sources import check_writable, plan_from, write_text
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.sim.shrink import Shrinker, operations
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import UsageError

LARGE = 12
"""From so many operations on, the rest of the budget goes into other seeds of smaller plans."""


def shrink(options: Shrink) -> int:
    """`sim shrink`."""
    (path,) = options.files
    plan = plan_from(path, options.seed)
    target = options.out or f"{plan.scenario}-{plan.seed}.json"
    check_writable(target)
    console = report.out()
    first = execute(plan).result
    if first.is_ok:
        raise UsageError(f"seed {plan.seed} of {plan.scenario} passes; nothing to shrink")
    wanted = options.property or first.findings[0].property
    finding = violation(first, wanted)
    if finding is None:
        found = ", ".join(dict.fromkeys(each.property for each in first.findings))
        raise UsageError(f"seed {plan.seed} of {plan.scenario} violates {found}, not {wanted}")
    console.print(f"{_size(plan)}; fails with {report.sentence(finding)}")
    shrinker = Shrinker(
        lambda smaller: violation(execute(smaller).result, wanted) is not None,
        options.budget // 2 + 1,
    )
    smallest = _with_progress(shrinker, plan)
    shrinker.budget = options.budget
    if operations(smallest) > LARGE:
        shrinker.tries = 8
        smallest = _with_progress(shrinker, smallest)
    note = f"shrunk from {path}, seed {plan.seed}: {wanted}"
    write_text(target, plan_file.dump(smallest, note))
    spent = " (budget spent; a smaller plan may exist)" if shrinker.is_spent else ""
    console.print(
        f"{_size(smallest)} after {counted(shrinker.runs, 'run')}{spent}; saved in {target}"
    )
    if (last := violation(execute(smallest).result, wanted)) is not None:
        console.print(f"[bold red]violated[/] {report.sentence(last)}")
    console.print(f"  again with: [bold]disque-trio sim run {target}[/]")
    return PASSED


def violation(result: Result, wanted: str) -> Finding | None:
    """The first violation of this property, or duplicate of this cause."""
    return next((each for each in result.findings if each.property == wanted), None)


def _size(plan: Plan) -> str:
    parts = (
        counted(len(plan.adds), "add"),
        counted(len(plan.consumers), "consumer"),
        counted(len(plan.faults), "fault"),
    )
    total = counted(operations(plan), "operation")
    return f"{total} ({', '.join(parts)}) on {counted(plan.nodes, 'node')}"


def _with_progress(shrinker: Shrinker, plan: Plan) -> Plan:
    with Status("shrinking", console=report.errors()) as status:

        def show(smaller: Plan, runs: int) -> None:
            status.update(f"run {runs}: {_size(smaller)}")

        shrinker.progress = show
        return shrinker.shrink(plan)
