"""What all tests here have in common."""

import pytest

from disque_trio.observe import client as deadline_client


@pytest.fixture(autouse=True)
def _nodes_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a node that is well may take longer than a second."""
    monkeypatch.setattr(deadline_client, "ANSWER_S", 20.0)
