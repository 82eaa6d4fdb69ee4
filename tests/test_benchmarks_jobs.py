"""The comparison of worker libraries: how runs are counted, and what is told of them.

No library and no broker is started here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from benchmarks import compare, page
from benchmarks.__main__ import main
from benchmarks.contenders import OURS, ROOT
from benchmarks.jobs import environments, handlers
from benchmarks.jobs.comparison import MARKS, Results, cases
from benchmarks.jobs.libraries import TRAITS, Library, Shape, ours
from benchmarks.jobs.loads import Loads, jobs_for, longest_pause, losses, percentile
from benchmarks.jobs.processes import stat_ticks
from benchmarks.jobs.tally import Tally
from benchmarks.programs import RedisServer
from benchmarks.report import Report

PEERS = [name for name in TRAITS if name != OURS]


# Counting.


def test_lost_jobs_and_jobs_that_ran_twice_are_counted(tmp_path: Path) -> None:
    tally = Tally.create(tmp_path / "tally", 4)

    for number in (0, 2, 2):
        tally.begin(number)
        tally.end(number)
    tally.begin(3)  # killed before its end

    assert (tally.done(), tally.lost(), tally.twice()) == (2, 2, 1)
    assert [at > 0 for at in tally.begun_s()] == [True, False, True, True]


def test_a_job_that_runs_for_ever_does_not_overflow(tmp_path: Path) -> None:
    tally = Tally.create(tmp_path / "tally", 1)

    for _ in range(300):
        tally.begin(0)
        tally.end(0)

    assert tally.twice() == 1


def test_runs_of_other_processes_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "tally"
    tally = Tally.create(path, 2)

    code = "from benchmarks.jobs.handlers import run; run(1, 0, 'x')"
    environment = {**os.environ, handlers.TALLY: str(path), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)

    assert tally.runs() == b"\0\1"


# Measuring.


def test_cpu_of_ended_children_counts() -> None:
    fields = "S 1 1 1 0 -1 4194304 100 200 0 0 7 3 20 10 20 0 1 0 100"

    assert stat_ticks(f"42 (a name) with (brackets) {fields}") == 40


def test_percentiles_are_of_the_sample() -> None:
    values = [float(number) for number in range(101)]

    assert percentile(values, 50) == 50
    assert percentile(values, 99) == 99


@pytest.mark.parametrize(("speed", "jobs"), [(10.0, 100), (5000.0, 10_000), (1e6, 60_000)])
def test_a_drain_takes_about_two_seconds(speed: float, jobs: int) -> None:
    assert jobs_for(speed, 2.0) == jobs


def test_jobs_that_did_not_run_and_that_ran_twice_are_told_apart() -> None:
    assert losses(b"\1\1\0\2\3\1") == {"lost": 1, "twice": 2}


def test_a_pause_ends_when_a_job_begins() -> None:
    assert longest_pause(10.0, [9.0, 0.0, 16.0, 12.0]) == 4.0
    assert longest_pause(10.0, [9.0]) == 0.0


def test_shapes_are_read_by_people() -> None:
    assert str(Shape("threads", 8)) == "threads x 8"
    assert str(Shape("", 10)) == "10"


# Environments.


@pytest.mark.parametrize("name", PEERS)
def test_every_version_of_a_library_is_pinned(name: str) -> None:
    lines = environments.requirements(name).splitlines()

    assert all("==" in line and " " not in line for line in lines)
    assert environments.version(name, "\n".join(lines))


@pytest.mark.parametrize("name", list(TRAITS))
def test_each_library_has_a_module(name: str) -> None:
    module = TRAITS[name].module or name

    assert (environments.REQUIREMENTS.parent / "peers" / f"{module}.py").exists()


# Rounds and reports.


@pytest.fixture
def libraries(tmp_path: Path) -> list[Library]:
    rest = [
        Library(name, RedisServer, ("redis-server",), python=tmp_path) for name in ("rq", "arq")
    ]
    return [ours(), *rest]


def test_each_round_begins_with_another_library(libraries: list[Library]) -> None:
    drain = cases(Loads())[0]
    plan = compare.Plan([drain], libraries, rounds=3)

    order = [each.name for each in compare._turns(plan, drain)]

    assert order == [OURS, "rq", "arq", "rq", "arq", OURS, "arq", OURS, "rq"]


def test_workers_are_killed_in_one_round_only() -> None:
    assert {case.name for case in cases(Loads()) if case.rounds == 1} == {"kill", "restart"}


@pytest.fixture
def results() -> Results:
    rows: compare.Rows = {
        "drain": {
            OURS: [{"speed": 20_000.0 + n, "worker": 26.0, "broker": 11.0} for n in range(3)],
            "rq": [{"speed": 400.0, "worker": 2200.0, "broker": 500.0}] * 3,
        },
        "kill": {"rq": [{"lost": 4, "twice": 0}]},
    }
    machine = {"processor": "a", "cores": 2, "memory_gib": 4, "system": "s", "python": "3"}
    report = Report(rows, machine, {OURS: "1", "rq": "3.0.0"}, "", "abc", "2026-01-01", 1.0)
    return Results(report, {OURS: "trio x 100"}, {"rq": ["rq==3.0.0"]}, "7.0.15")


def test_a_report_is_read_as_it_was_written(results: Results) -> None:
    facts = json.loads(json.dumps(results.as_json(cases(Loads()))))

    assert facts["medians"]["drain"][OURS]["speed"] == 20_001
    assert facts["medians"]["kill"]["rq"] == {"lost": 4, "twice": 0}
    assert attrs.asdict(Results.of(facts)) == attrs.asdict(results)


def test_the_page_gets_tables_and_a_picture(results: Results, tmp_path: Path) -> None:
    file, paper = tmp_path / "found.json", tmp_path / "page.md"
    file.write_text(json.dumps(results.as_json(cases(Loads()))))
    paper.write_text("before\n" + "\n".join(MARKS) + "after\n")

    assert main(["jobs", "--from", str(file), "--page", str(paper)]) == 0

    text = paper.read_text()
    assert "| no-op | disque_trio | 20,001 ± 0 % | 26 ± 0 % | 11 ± 0 % |" in text
    assert "| kill -9 of a worker | rq |  | 4 | 0 |" in text
    assert "rq 3.0.0; redis-server 7.0.15" in text
    assert text.endswith("after\n")
    page.check(paper, MARKS)
    assert "disque_trio beside other worker libraries" in (tmp_path / "page-jobs.svg").read_text()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--libraries", "resque"], "--libraries resque: there are"),
        (["--only", "nothing"], "--only nothing: there is no such load"),
        (["--rounds", "0"], "--rounds 0: at least one is needed"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["jobs", *words]) == 2
    assert reason in capsys.readouterr().out
