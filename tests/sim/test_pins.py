"""Runs that once found something, kept as plans (`disque-trio sim pin`), pass."""

import json
from pathlib import Path
from typing import Final

import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.scenarios import plan_file

ROOT: Final = Path(__file__).parents[2]
PINS: Final = sorted(ROOT.glob("scenarios/pins/*.json"))
SAMPLED: Final = 25
"""Of so many pins `make test` runs one."""
MOST_BYTES: Final = 100_000
ANSWERS: Final = {"add.refused", "add.unknown", "add.cleaned_up", "async.added"}


def test_there_are_pins() -> None:
    assert len(PINS) > SAMPLED


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.stem)
def test_a_pin_is_small_and_says_what_it_has_found(path: Path) -> None:
    facts = json.loads(path.read_text("utf-8"))

    assert facts["note"]
    assert path.stem.startswith(facts["scenario"])
    assert path.stat().st_size <= MOST_BYTES


@pytest.mark.parametrize("path", PINS[::SAMPLED], ids=lambda path: path.stem)
def test_a_pin_of_the_sample_passes(path: Path) -> None:
    _passes(path)


@pytest.mark.pins
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", PINS, ids=lambda path: path.stem)
def test_a_pin_passes(path: Path) -> None:
    _passes(path)


def _passes(path: Path) -> None:
    plan = plan_file.load(path)

    result = execute(plan).result

    assert result.findings == ()
    if plan.consumers:
        assert result.delivered
    else:
        # Shrinking has left only producers: then the run is about the answers that they get.
        assert result.marks.keys() & ANSWERS
