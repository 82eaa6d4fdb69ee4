"""The signature of a run: its behaviour, as a set of short texts.

It is derived from rows, so every engine and every trace has one. It contains no times, ids or names
of nodes: runs that differ only in these have the same signature.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from disque_trio.sim.picture.job_states import LETTERS, JobState, JobStates
from disque_trio.sim.scenarios import fault_kinds
from disque_trio.tracing.details import jobs_in
from disque_trio.tracing.rows import Row

_STEPS: Final = frozenset((
    "hold", "drop", "queue", "unqueue", "serve", "give", "acked", "dead", "redrive", "postpone",
    "untie", "send",
))  # fmt: skip
"""Kinds of rows about steps of a node with a job."""
_OUTCOMES: Final = ("ok", "refused", "unknown")


class Signature:
    """Watches one run.

    Its elements, where *state* is the letter of the job's state at that node (`LETTERS`):

    - ``recv MESSAGE state|others``: a message about a job arrives. `others` has the letters of the
      job's states at all other nodes, each once.
    - ``recv MESSAGE state under FAULT``: while a fault of this kind affects the node.
    - ``KIND.CAUSE state for MESSAGE``: what the node does with the job in the moment in which the
      message arrives, or ``for -`` if none did (a timer, or a request).
    - ``VERB.OUTCOME.CAUSE state|others``: how a client's request about the job ended.
    """

    def __init__(self) -> None:
        self.elements: set[str] = set()
        self._states = JobStates()
        self._arrived: dict[str, tuple[int, dict[str, str]]] = {}
        """By node: when the last message arrived, and by job its name."""
        self._faults: dict[str, dict[tuple[str, str, str], None]] = {}
        """By node: the faults that affect it, each as its kind, node and peer."""

    def see(self, row: Row) -> None:
        """Add the next row of the run."""
        kind = row.kind
        if kind == "recv":
            self._receive(row)
        elif kind in _STEPS:
            if row.job:
                self._step(row)
        elif kind in fault_kinds.ROWS:
            self._fault(row)
        elif kind == "heal.end":
            self._faults.clear()
        elif row.client and row.job:
            verb, _, outcome = kind.partition(".")
            if outcome in _OUTCOMES:
                cause = f"{verb}.{outcome}.{row.cause}"
                self.elements.add(f"{cause} {self._state(row.node, row.job)}")
        self._states.see(row)

    def _receive(self, row: Row) -> None:
        jobs = jobs_in(row)
        if not jobs:
            return
        time, arrived = self._arrived.get(row.node, (-1, {}))
        if time != row.time:
            arrived = {}
            self._arrived[row.node] = (row.time, arrived)
        faults = dict.fromkeys(kind for kind, _, _ in self._faults.get(row.node, ()))
        for job in jobs:
            arrived[job] = row.cause
            state = self._state(row.node, job)
            self.elements.add(f"recv {row.cause} {state}")
            for fault in faults:
                self.elements.add(f"recv {row.cause} {state[0]} under {fault}")

    def _step(self, row: Row) -> None:
        time, arrived = self._arrived.get(row.node, (-1, {}))
        message = arrived.get(row.job, "-") if time == row.time else "-"
        own = self._states.nodes.get(row.node, {}).get(row.job, JobState.NONE)
        self.elements.add(f"{row.kind}.{row.cause} {LETTERS[own]} for {message}")

    def _state(self, node: str, job: str) -> str:
        """Return the job's state at the node, and its states at other nodes."""
        nodes = self._states.nodes
        own = nodes.get(node, {}).get(job, JobState.NONE)
        others = {jobs[job] for name, jobs in nodes.items() if name != node and job in jobs}
        return f"{LETTERS[own]}|{''.join(LETTERS[each] for each in sorted(others))}"

    def _fault(self, row: Row) -> None:
        kind = fault_kinds.ROWS[row.kind]
        is_over = kind.is_ended_by(row.kind, row.detail)
        if not (kind.end_row or kind.is_level):
            return
        fault = kind.name, row.node, row.peer
        for node in filter(None, (row.node, row.peer)):
            faults = self._faults.setdefault(node, {})
            if is_over:
                faults.pop(fault, None)
            else:
                faults[fault] = None


def with_marks(elements: Iterable[str], marks: Iterable[str]) -> Iterator[str]:
    """Yield the elements of a run, in order, with the marks of its verdict."""
    yield from sorted({*elements, *(f"mark {mark}" for mark in marks)})
