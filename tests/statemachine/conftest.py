"""In every test of the state machine, jobs go only the ways of `job_states`, and the invariants
hold at the end."""

from collections.abc import Iterator

import pytest

from disque_trio.statemachine.form import COMPILED
from disque_trio.statemachine.invariants import check
from disque_trio.statemachine.state import NodeState
from tests.rig import Checks
from tests.statemachine.watching_states import Way, watched


@pytest.fixture(autouse=True)
def ways() -> Iterator[set[Way]]:
    """The changes of states that the test has made so far."""
    if COMPILED:
        # Attributes of native classes cannot be replaced.
        yield set()
        return
    with watched() as seen:
        yield seen


@pytest.fixture(autouse=True)
def _checked_at_the_end() -> Iterator[None]:
    """Nodes with many jobs are not checked after each input."""
    unfinished: dict[Checks, NodeState] = {}
    Checks.unfinished = unfinished
    yield
    Checks.unfinished = None
    for node in unfinished.values():
        check(node)
