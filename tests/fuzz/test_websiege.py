"""A few seconds of what `python -m tests.fuzz web` does for minutes."""

from tests.fuzz.websiege import besiege_web


def test_hostile_browsers_do_no_harm() -> None:
    outcome = besiege_web(4, seed=1, clients=3)

    assert outcome.attacks.total() > 20
    assert len(outcome.attacks) == 6
