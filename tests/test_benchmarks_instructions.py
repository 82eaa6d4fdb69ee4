"""`make instructions`: its cases do what they say, and its records are compared and renewed."""

from pathlib import Path
from subprocess import CompletedProcess

import attrs
import pytest

from benchmarks.instructions import comparison, counting, record
from benchmarks.instructions.cases import CASES, Case, Meter
from benchmarks.instructions.record import Record, compare, differences, renewed

BUILD = {"python": "3.11", "machine": "x86_64"}
KNOWN = Record(BUILD, {"ping": 1000, "add": 2000}, ({"reason": "first"},))
PING = next(case for case in CASES if case.name == "ping")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_measures_something(case: Case) -> None:
    marks: list[None] = []

    case.run(Meter(lambda: marks.append(None)), case.count)

    assert marks
    assert len(marks) % 2 == 0


@pytest.mark.parametrize("file", sorted(record.path().parent.glob("*.json")), ids=lambda f: f.stem)
def test_each_case_is_recorded_and_no_other(file: Path) -> None:
    known = record.read(file)

    assert known is not None
    assert known.counts.keys() == {case.name for case in CASES}
    assert all(change["reason"] for change in known.changes)


# Comparing.


@pytest.mark.parametrize(
    ("now", "is_worse", "is_better"),
    [(1000, False, False), (1020, False, False), (1021, True, False), (979, False, True)],
)
def test_two_percent_more_are_too_many(now: int, is_worse: bool, is_better: bool) -> None:
    [verdict] = compare({"ping": now}, KNOWN)

    assert (verdict.is_worse, verdict.is_better) == (is_worse, is_better)


def test_a_case_that_is_not_recorded_is_an_error() -> None:
    [verdict] = compare({"new": 1}, KNOWN)

    assert verdict.is_worse


def test_builds_that_differ_are_told() -> None:
    assert differences(BUILD, BUILD) == []
    assert differences(BUILD, {"python": "3.12", "machine": "x86_64"}) == [
        "python: 3.11 is recorded, 3.12 is here"
    ]


# Recording.


def test_a_record_says_why_and_what_was_different() -> None:
    made = renewed(KNOWN, BUILD, {"ping": 1500.4, "add": 2001}, "pings sing", is_whole=True)

    assert made.counts == {"ping": 1500, "add": 2001}
    assert made.changes[0] == {"reason": "first"}
    assert made.changes[1]["reason"] == "pings sing"
    assert made.changes[1]["was"] == {"ping": 1000}


def test_cases_that_were_not_counted_stay_as_they_were() -> None:
    made = renewed(KNOWN, BUILD, {"ping": 1500}, "why", is_whole=False)

    assert made.counts == {"ping": 1500, "add": 2000}


def test_cases_that_are_no_more_are_dropped() -> None:
    made = renewed(KNOWN, BUILD, {"ping": 1000}, "why", is_whole=True)

    assert made.counts == {"ping": 1000}


def test_counts_of_another_build_do_not_stay() -> None:
    made = renewed(KNOWN, {"python": "3.12"}, {"ping": 900}, "a new Python", is_whole=False)

    assert made.counts == {"ping": 900}
    assert made.changes[-1]["builds"]
    assert "was" not in made.changes[-1]


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "pure.json"
    assert record.read(file) is None

    record.write(file, KNOWN)

    assert record.read(file) == KNOWN


# The command.


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, float]:
    """The instructions of a PING that are counted, beside a record of 1000."""
    counts: dict[str, float] = {"ping": 1000.0}
    monkeypatch.setattr(counting, "is_installed", lambda: True)
    monkeypatch.setattr(counting, "count", lambda *_: counts)
    monkeypatch.setattr(record, "build", lambda: BUILD)
    monkeypatch.setattr(record, "path", lambda: tmp_path / "record.json")
    record.write(tmp_path / "record.json", attrs.evolve(KNOWN, counts={"ping": 1000}))
    return counts


def run(*arguments: str) -> int:
    return comparison.main(["--only", "ping", *arguments])


def test_what_is_as_recorded_is_well(counted: dict[str, float]) -> None:
    assert run() == 0


def test_what_costs_more_fails(
    counted: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    counted["ping"] = 1100

    assert run() == comparison.WORSE
    assert "ping: 1.100 times the record" in capsys.readouterr().out


def test_what_is_too_much_is_counted_again(
    counted: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([1100.0, 1050.0, 1010.0])
    monkeypatch.setattr(counting, "count", lambda *_: {"ping": next(found)})

    assert run() == 0
    assert list(found) == []


def test_a_reason_accepts_it(counted: dict[str, float]) -> None:
    counted["ping"] = 1100

    assert run("--record", "it does more") == 0
    assert run() == 0
    known = record.read(record.path())
    assert known is not None
    assert known.changes[-1]["was"] == {"ping": 1000}


def test_an_empty_reason_is_none(counted: dict[str, float]) -> None:
    with pytest.raises(SystemExit):
        run("--record", " ")


def test_another_build_is_not_compared(
    counted: dict[str, float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counted["ping"] = 9999
    monkeypatch.setattr(record, "build", lambda: {**BUILD, "python": "3.12"})

    assert run() == 0
    printed = capsys.readouterr().out
    assert "not comparable" in printed
    assert "python: 3.11 is recorded, 3.12 is here" in printed


def test_a_form_that_is_not_recorded_is_not_compared(
    counted: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    record.path().unlink()

    assert run() == 0
    assert "form is not recorded" in capsys.readouterr().out


def test_without_valgrind_nothing_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert run() == 0
    assert "valgrind is not on PATH" in capsys.readouterr().out


# What callgrind writes.


def test_what_is_between_two_marks_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is written at each of four marks, and one at the end."""

    def ran(_: object, folder: Path) -> CompletedProcess[str]:
        for name, count in (("7.1", 5), ("7.2", 640), ("7.3", 6), ("7.4", 960), ("7", 8)):
            (folder / name).write_text(f"version: 1\nsummary: {count}\n")
        return CompletedProcess([], 0, "7 ping\n", "")

    monkeypatch.setattr(counting, "_run", ran)

    assert counting.count([PING], tmp_path / "kept") == {"ping": 1600 / PING.count}
    assert {each.name for each in (tmp_path / "kept").iterdir()} == {"ping.1", "ping.2"}
