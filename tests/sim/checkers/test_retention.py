"""S1: what the producer was promised."""

import pytest

from tests.sim.checkers.tale import JOB, Tale, broken


@pytest.mark.parametrize(("is_done", "due"), [(True, []), (False, ["S1"])])
def test_of_a_job_that_is_done_before_it_was_added_no_copies_are_asked(
    *, is_done: bool, due: list[str]
) -> None:
    tale = Tale()
    tale.add(1, to=("n2",))
    if is_done:
        tale.say(1.008, "ack.invoke", "n1", job=JOB, client="c1", ref=77)

    assert broken(tale.verdict()) == due
