"""Each test of faults is run in each engine of virtual time; in the trio engine by `make slow`."""

from typing import Any

import pytest

from disque_trio.sim.engines.heap import run as heap
from disque_trio.sim.engines.trio import run as whole
from tests.sim import runs


@pytest.fixture(
    autouse=True,
    params=[pytest.param(heap, id="heap"), pytest.param(whole, id="trio", marks=pytest.mark.slow)],
)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Play plans in this engine."""
    monkeypatch.setattr(runs, "simulate", request.param.simulate)
    return request.param
