"""One machine, told whatever clients, members and unknown nodes may send in whatever order.

It never raises, its invariants hold after each input, whoever asks is answered once, and nothing
is sent on a link that does not exist (`storm`).
"""

import os
import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.statemachine.storm import Storm, fingerprint


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, (1 << 32) - 1), min_size=50, max_size=150))
def test_the_machine_is_in_order_whatever_it_is_told(inputs: list[int]) -> None:
    storm = Storm()

    for number in inputs:
        storm.step(number)


@pytest.mark.sample(4)
@pytest.mark.parametrize("first", range(0, 40_000, 1000))
def test_the_machine_is_in_order_after_a_thousand_inputs(first: int) -> None:
    storm = Storm()

    for number in range(first, first + 1000):
        storm.step(number)


def test_another_process_says_the_same() -> None:
    # Texts hash differently there, which would show in the order of anything kept in a set.
    process = subprocess.run(
        [sys.executable, "-m", "tests.statemachine.storm", "600"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONHASHSEED": "12345"},
        capture_output=True,
        check=True,
        text=True,
    )

    assert process.stdout == fingerprint(600)
