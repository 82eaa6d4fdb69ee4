"""In every test of the state machine, jobs go only the ways of `job_states`."""

from collections.abc import Iterator

import pytest

from disque_trio.statemachine.form import COMPILED
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
