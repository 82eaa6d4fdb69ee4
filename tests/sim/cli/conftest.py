"""Scenarios as files."""

from pathlib import Path

import pytest

from tests.sim.cli.files import AGAIN, SMALL, scenario_file


@pytest.fixture
def small(tmp_path: Path) -> str:
    return scenario_file(tmp_path, "small", SMALL)


@pytest.fixture
def again(tmp_path: Path) -> str:
    return scenario_file(tmp_path, "again", AGAIN)
