"""What all tests here have in common."""

import pytest

from disque_trio.observe import watching


@pytest.fixture(autouse=True)
def _nodes_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a node that is well may take longer than a second."""
    monkeypatch.setattr(watching, "ANSWER_S", 20.0)
