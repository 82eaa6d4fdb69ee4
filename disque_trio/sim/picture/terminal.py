"""A run as lines for a terminal: one for each change, with a column for each node.

    t=  12.481000  n1    +q       J4 first                  [Q....]
    t=  12.502000        cut      n1 n2 | n3–n5
    t=  13.240311  n3    +q       J4 retry                  [Q.Q..]
    t=  13.241007  c1    deliver  J4 from n3                [Q.h..]  delivery 2: D4

Between the brackets each node has a letter: `.` no record, `w` copies are being made, `h` held, `Q`
queued, `K` acknowledged here, `k` acknowledged elsewhere, `d` a dummy ack, `x` the node is down.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from disque_trio.sim.checkers.verdict import Verdict
from disque_trio.sim.picture import findings, strips
from disque_trio.sim.picture.job_states import JobStates
from disque_trio.sim.picture.links import is_client, lifeline, link, node_names, numbers
from disque_trio.sim.scenarios.fault_kinds import LINK_ROWS
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row

SIGNS = {
    "hold": "+",
    "drop": "-",
    "queue": "+q",
    "unqueue": "-q",
    "acked": "ack",
    "dead": "dead",
    "redrive": "redriven",
    "get.deliver": "deliver",
}
SILENT = frozenset({"send", "recv"})
SILENT_CAUSES = frozenset({"served", "given", "acked", "dropped"})
"""Causes of an `unqueue` whose reason has a line of its own."""
COLUMNS_MOST = 32
"""Larger clusters get no columns."""


def lines(
    plan: Plan, rows: Sequence[Row], verdict: Verdict | None, *, job: str = "", last: int = 0
) -> list[str]:
    """Return a line for each change; with `job`, only those of the job and the faults; with `last`,
    only the last ones."""
    found = list(_Printer(plan, rows, verdict, job).lines())
    return found[-last:] if last else found


class _Printer:
    """Creates the lines in one pass over the rows."""

    def __init__(self, plan: Plan, rows: Sequence[Row], verdict: Verdict | None, job: str) -> None:
        self.rows = rows
        self.job = job
        self.nodes = node_names(plan, rows)
        self.linked = link(rows)
        self.numbers = numbers(self.linked)
        self.causes = {repeat.row: repeat.cause for repeat in findings.repeats(rows, verdict)}
        self.states = JobStates()
        self.down: dict[str, None] = {}
        self.delivered: Counter[str] = Counter()
        self.last_fault = ("", 0)
        self.faults: dict[tuple[str, int], list[strips.Pair]] = {}
        for row in rows:
            if row.kind in LINK_ROWS:
                self.faults.setdefault((row.kind, row.time), []).append((row.node, row.peer))

    def lines(self) -> Iterator[str]:
        """Yield all lines."""
        for index, row in enumerate(self.rows):
            self.states.see(row)
            if row.kind == "crash":
                self.down[row.node] = None
            elif row.kind == "start":
                self.down.pop(row.node, None)
            elif row.kind == "get.deliver":
                self.delivered[row.job] += 1
            if self._is_shown(index, row):
                yield self._line(index, row)

    def _is_shown(self, index: int, row: Row) -> bool:
        job = self.linked.jobs[index]
        if row.kind in SILENT or (row.kind == "unqueue" and row.cause in SILENT_CAUSES):
            return False
        if row.kind in LINK_ROWS:
            fault, self.last_fault = self.last_fault, (row.kind, row.time)
            return fault != self.last_fault
        if not job:
            return row.kind != "lost" and not is_client(row)
        return not self.job or job == self.job

    def _line(self, index: int, row: Row) -> str:
        job = self.linked.jobs[index]
        who = "" if row.kind in LINK_ROWS else lifeline(row)
        text = self._links(row) if row.kind in LINK_ROWS else self._describe(row, job)
        line = f"t={row.time / 1e6:12.6f}  {who:<5} {SIGNS.get(row.kind, row.kind):<14} {text:<28}"
        if not job:
            return line.rstrip()
        return f"{line} {self._columns(job)}{self._note(index, row)}".rstrip()

    def _describe(self, row: Row, job: str) -> str:
        name = f"J{self.numbers[job] + 1}" if job else ""
        match row.kind:
            case "lost":
                parts = [name, row.cause.upper(), f"to {row.peer}"]
            case "serve":
                parts = [name, f"to {row.client}"]
            case "get.deliver":
                parts = [name, f"from {row.node}"]
            case _ if is_client(row):
                parts = [name, f"at {row.node}", row.cause]
            case _:
                parts = [name, row.cause, row.peer, "" if job else row.detail]
        return " ".join(part for part in parts if part)

    def _links(self, row: Row) -> str:
        """Return all links that the fault affects at this time."""
        return strips.shape(self.faults[row.kind, row.time], self.nodes)

    def _columns(self, job: str) -> str:
        if len(self.nodes) > COLUMNS_MOST:
            return ""
        letters = self.states.of(job, self.nodes)
        shown = (
            "x" if node in self.down else each
            for node, each in zip(self.nodes, letters, strict=True)
        )
        return f"[{''.join(shown)}]"

    def _note(self, index: int, row: Row) -> str:
        if row.kind != "get.deliver" or self.delivered[row.job] == 1:
            return ""
        cause = self.causes.get(index, "")
        return f"  delivery {self.delivered[row.job]}{f': {cause}' if cause else ''}"
