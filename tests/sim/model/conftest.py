"""Each test of faults is run in each engine of virtual time."""

from typing import Any

import pytest
from disque_trio.sim.engines.virtual import run as virtual

from disque_trio.sim.engines.heap import run as heap
from disque_trio.sim.engines.trio import run as whole
from tests.sim import runs


@pytest.fixture(autouse=True, params=[heap, virtual, whole], ids=["heap", "virtual", "trio"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Play plans in this engine."""
    monkeypatch.setattr(runs, "simulate", request.param.simulate)
    return request.param
