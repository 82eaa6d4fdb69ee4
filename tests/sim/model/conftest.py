"""Each test of faults is run in each engine of virtual time."""

from typing import Any

import pytest

from disque_trio.sim.engines.heap import run as heap
from disque_trio.sim.engines.trio import run as whole
from tests.sim import runs


@pytest.fixture(autouse=True, params=[heap, whole], ids=["heap", "trio"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Play plans in this engine."""
    monkeypatch.setattr(runs, "simulate", request.param.simulate)
    return request.param
