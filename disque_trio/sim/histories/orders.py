"""Searches an order of calls about one key that explains all replies.

Each call takes effect at one moment between its begin and its end. The algorithm is that of Wing
and Gong with Lowe's just-in-time rule: a call is put into the order only when one of the pending
calls ends. Two properties keep the search small. Keys are searched separately, because an order of
all calls exists if there is one for each key (locality). And calls that change nothing are put into
the order as soon as they fit: they commute with all others, so one of their orders suffices
(partial order reduction).
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import attrs

from disque_trio.sim.histories.records import Seconds

NOBODY: Final = ""
"""No job has the key."""
UNKNOWN: Final = "?"
"""One of the earlier jobs may have the key, or several, or none."""
MOST_STATES: Final = 20_000
"""A search with more states at once is given up."""


@attrs.frozen(eq=False, kw_only=True)
class Operation:
    """A call about a key, or the end of the job that has it."""

    kind: Literal["add", "found", "free"]
    """`add`: the key was given to this job, or the job has it. `found`: the job has the key.
    `free`: the job no longer has the key."""
    id: str
    begin: Seconds
    end: Seconds
    must_happen: bool = True
    line: str = ""


@attrs.frozen
class State:
    """The key after some of the calls."""

    holder: str = UNKNOWN
    known: frozenset[str] = frozenset()
    """Jobs that the search treats as earlier ones without a known id."""
    gone: frozenset[str] = frozenset()
    """Jobs that had the key and no longer have it."""
    done: frozenset[int] = frozenset()
    """Calls that are in the order and have not ended."""


@attrs.frozen(eq=False, kw_only=True)
class Problem:
    """The calls about one key in a calm period."""

    operations: Sequence[Operation]
    earlier: frozenset[str] = frozenset()
    """Jobs that were added before the period."""
    nameless: int = 0
    """The number of ADDJOBs before the period without an outcome."""
    late: frozenset[str] = frozenset()
    """Jobs that an ADDJOB without an outcome may have added in the period."""
    start: str = UNKNOWN
    """The job with the key at the start; `NOBODY` for a key that was not used before."""


@attrs.frozen(eq=False, kw_only=True)
class Stuck:
    """There is no order: this call does not fit into any."""

    operation: Operation
    holders: tuple[str, ...]
    """The jobs that may have the key when the call ends."""


class GivenUpError(Exception):
    """The search has too many states."""


def search(problem: Problem) -> Stuck | None:
    """Return the first call that no order explains, or None if there is an order. Raise
    `GivenUpError`."""
    # The end of an earlier job changes nothing: it is never certain that such a job has the key.
    operations = [
        each for each in problem.operations if each.kind != "free" or each.id not in problem.earlier
    ]
    last_use = {each.id: each.end for each in sorted(operations, key=lambda each: each.end)}
    states = {State(problem.start)}
    pending: dict[int, Operation] = {}
    for time, is_end, number in _events(operations):
        operation = operations[number]
        if not is_end:
            pending[number] = operation
            continue
        if operation.must_happen:
            found = _with(problem, states, pending, number)
            if not found:
                holders = tuple(sorted({state.holder for state in states}))
                return Stuck(operation=operation, holders=holders)
        else:
            # It may take effect until then, if that helps a later call.
            found = states | _with(problem, states, pending, number)
        del pending[number]
        states = {_without(state, number, time, last_use) for state in found}
    return None


def _events(operations: Sequence[Operation]) -> Iterator[tuple[Seconds, bool, int]]:
    events = [(each.begin, False, number) for number, each in enumerate(operations)]
    events += [(each.end, True, number) for number, each in enumerate(operations)]
    return iter(sorted(events))


def _without(state: State, number: int, now: Seconds, last_use: dict[str, Seconds]) -> State:
    """Return the state without the parts that no later call can observe."""
    gone = frozenset(id for id in state.gone if last_use[id] >= now)
    return State(state.holder, state.known, gone, state.done - {number})


def _with(
    problem: Problem, states: set[State], pending: dict[int, Operation], wanted: int
) -> set[State]:
    """Return all states in which this call is in the order, with any others before it."""
    found: set[State] = set()
    todo, seen = list(states), set(states)
    while todo:
        state = todo.pop()
        if wanted in state.done:
            found.add(state)
            continue
        free = [number for number in pending if number not in state.done]
        pure = next((n for n in free if pending[n].kind != "free"
                     and pending[n].id == state.holder), None)  # fmt: skip
        for number in free if pure is None else [pure]:
            for after in _steps(problem, state, pending[number]):
                following = attrs.evolve(after, done=after.done | {number})
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        if len(seen) > MOST_STATES:
            raise GivenUpError
    return found


def _steps(problem: Problem, state: State, operation: Operation) -> Iterator[State]:
    """Yield the states after a call: none if its reply does not fit."""
    if operation.kind == "free":
        yield from _freed(problem, state, operation)
        return
    id, holder = operation.id, state.holder
    is_earlier = id in problem.earlier or id in state.known
    if holder == id or (holder == UNKNOWN and is_earlier):
        yield state
    elif id in state.gone:
        return
    elif holder in (UNKNOWN, NOBODY) and not is_earlier:
        if operation.kind == "add" or id in problem.late:
            yield attrs.evolve(state, holder=id)
        if holder == UNKNOWN and len(state.known) < problem.nameless:
            yield attrs.evolve(state, known=state.known | {id})


def _freed(problem: Problem, state: State, operation: Operation) -> Iterator[State]:
    id = operation.id
    if state.holder == id:
        yield attrs.evolve(state, holder=NOBODY, gone=state.gone | {id})
    elif operation.must_happen and (id in problem.late or id in state.known):
        yield state
