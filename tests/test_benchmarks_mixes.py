"""Resident memory stays near maxmemory, in whatever order jobs of all sizes come and go.

Memory is not time: this holds on a busy machine too.
"""

import json
from pathlib import Path

import pytest

from benchmarks import mixes
from benchmarks.__main__ import main
from benchmarks.mixes import MOST, Mix, just, measure

MB = 1 << 20
QUICK = 80 * MB


def _small_then_large(load: mixes.Load) -> None:
    for size in (30, 20_000):
        load.fill(just(size))
        load.drain(in_order=False)


@pytest.mark.slow
def test_survivors_among_small_jobs_do_not_add_to_large_ones() -> None:
    outcome = measure(Mix("quick", "", _small_then_large), QUICK)

    assert outcome.full[0] > 0.95
    assert all(outcome.added)
    assert outcome.ratio <= MOST


def test_a_mix_that_takes_too_much_is_told_by_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {name: mixes.Outcome(name, 0, ratio, [], [], 0) for name, ratio in _RATIOS.items()}
    monkeypatch.setattr(mixes, "measure", lambda mix, _limit: found[mix.name])
    report = tmp_path / "mixes.json"

    assert main(["mixes", "--only", "survivors"]) == 0
    assert main(["mixes", "--only", "survivors,halves", "--json", str(report)]) == 1
    assert "1.26" in capsys.readouterr().out
    assert [each["ratio"] for each in json.loads(report.read_text())["mixes"]] == [1.25, 1.26]


_RATIOS = {"survivors": 1.25, "halves": 1.26}


def test_a_mix_that_there_is_not_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mixes", "--only", "nothing"]) == 2
    assert "--only nothing: there is no such mix" in capsys.readouterr().out
