"""The comparison with other servers: one of ours is measured in small, the rest is arithmetic."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from benchmarks import compare, drawing, history
from benchmarks import report as reports
from benchmarks.__main__ import main
from benchmarks.case import ALONE, CPU, FRESH, RATE, SPEED, Case, Demand, Sample, Target
from benchmarks.cases import CASES, TARGETS
from benchmarks.contenders import PURE, Contender, Subject, pure, running
from benchmarks.load.dialects import BeanstalkReader, Redis
from benchmarks.programs import DisqueServer, Place, Tube
from benchmarks.tool import BenchmarkError
from compiling.layout import TARGET

OURS = Contender("disque_trio", DisqueServer, ("disque_trio",))
ORIGINAL = Contender("original", DisqueServer, ("original",))
TUBES = Contender("beanstalkd", Tube, ("beanstalkd",))


def unmeasured(_subject: Subject, _size: float) -> Sample:
    raise AssertionError("is not measured")


ADD = Case("add", "ADDJOB", unmeasured)


def report_of(ours: Sequence[Sample], theirs: Sequence[Sample]) -> reports.Report:
    return reports.Report(
        rows={"add": {"disque_trio": list(ours), "original": list(theirs)}},
        machine={
            "processor": "any",
            "cores": 2,
            "python": "3.11.7",
            "memory_gib": 4,
            "system": "Linux",
        },
        versions={"disque_trio": "0.1.0", "original": "1.0"},
        original="original",
        commit="abc1234",
        date="2026-01-01 00:00",
        size=1.0,
    )


REPORT = report_of(
    [{"speed": 100.0, "cpu": 8.0}, {"speed": 150.0, "cpu": 12.0}, {"speed": 900.0, "cpu": 10.0}],
    [{"speed": 300.0, "cpu": 5.0}],
)


# One run, in small.


def test_a_node_is_measured_by_clients_that_answer_what_they_get(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "bench.json"
    words = ["--quick", "--only", "turn,drain,latency-10k", "--without", "redis-server,beanstalkd"]

    assert main([*words, "--json", str(target)]) == 0

    assert "GETJOB COUNT 200, ACKJOB 200" in capsys.readouterr().out
    medians = json.loads(target.read_text("utf-8"))["medians"]
    assert all(medians[case]["disque_trio"]["cpu"] > 0 for case in ("turn", "drain"))
    waits = medians["latency-10k"]["disque_trio"]
    assert 0 < waits["p50"] <= waits["p99"] <= waits["p99.9"]
    assert "<svg" in target.with_suffix(".svg").read_text("utf-8")


def test_the_pure_form_runs_whatever_is_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TARGET))

    with running(pure(), ALONE, tmp_path) as subject:
        assert b"disque_form:pure" in subject.servers[0].client.text("INFO", "server")


@pytest.mark.slow
def test_what_a_worker_at_another_node_waits_is_measured(tmp_path: Path) -> None:
    target = tmp_path / "bench.json"
    words = ["--quick", "--only", "meet-*", "--without", "redis-server,beanstalkd"]

    assert main([*words, "--json", str(target)]) == 0

    medians = json.loads(target.read_text("utf-8"))["medians"]
    assert len(medians) == 6
    for waits in (each["disque_trio"] for each in medians.values()):
        assert 0 <= waits["p50"] <= waits["worst"] < 60_000


def test_the_list_names_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0

    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [case.name for case in CASES]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--only", "ping,pong"], "--only pong: there is no such case; see --list"),
        (["--rounds", "0"], "--rounds 0: at least one is needed"),
        (["--against", "/no/such"], "/no/such: there is no such program"),
        (["--size", "2"], "--size 2: more than 0, 1 at most"),
        (["--from", "/no/such"], "/no/such is no report of an earlier run"),
        (["--page", "/no/such"], "/no/such has no lines <!-- figures -->"),
        (["--add"], "--add: to what? Name the file with --json"),
        (["--only", ","], "--only ,: it names nothing"),
        (["--without", "redis-sever"], "--without redis-sever: there is no such contender; there "),
        (["--json", "/no/such/file"], "--json /no/such/file: there is no directory /no/such"),
        (["--json", "/proc"], "--json /proc: this is a directory, name a file in it"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is_started(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2

    assert complaint in capsys.readouterr().out


def test_a_run_that_is_interrupted_spoils_no_case_that_was_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(reports.as_json(REPORT, CASES)), "utf-8")

    def run(_plan: object, _tell: object, rows: compare.Rows, _problems: object) -> None:
        rows["add"] = {"disque_trio": [{"speed": 1.0, "cpu": 1.0}]}
        rows["ping"] = {"disque_trio": [{"speed": 1.0, "cpu": 1.0}]}
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "run", run)
    words = ["--add", "--json", str(file), "--only", "add,ping", "--without", "redis-server"]

    assert main(words) == 1

    rows = reports.from_json(json.loads(file.read_text("utf-8"))).rows
    assert rows["add"] == REPORT.rows["add"]
    assert rows["ping"] == {"disque_trio": [{"speed": 1.0, "cpu": 1.0}]}
    assert "add: not all of it" in capsys.readouterr().out


# The table of cases.


def test_each_target_is_about_cases_and_figures_that_there_are() -> None:
    by_name = {case.name: case for case in CASES}

    assert len(by_name) == len(CASES)
    for target in TARGETS:
        assert target.figure in {figure.name for figure in by_name[target.case].figures}
        assert target.since in {"", *by_name}
        assert bool(target.since) == (target.demand is Demand.GROWTH)


# Rounds.


@attrs.define(eq=False)
class Stand:
    """Pretends to start servers, and counts how many."""

    started: list[str] = attrs.Factory(list)
    ended: list[str] = attrs.Factory(list)

    @contextlib.contextmanager
    def start(self, contender: Contender, _place: Place, _directory: Path) -> Iterator[Subject]:
        self.started.append(contender.name)
        yield Subject(contender, (), 0.0)
        self.ended.append(contender.name)


def run(
    case: Case, contenders: Sequence[Contender], rounds: int
) -> tuple[compare.Rows, list[str], Stand]:
    stand = Stand()
    plan = compare.Plan([case], contenders, rounds, start=stand.start)
    told: list[str] = []
    rows: compare.Rows = {}
    problems: list[str] = []
    compare.run(plan, told.append, rows, problems)
    assert len(told) == plan.steps()
    assert sorted(stand.started) == sorted(stand.ended)
    return rows, problems, stand


def test_each_round_begins_with_another_contender_and_keeps_the_servers() -> None:
    taken = []

    def take(subject: Subject, _size: float) -> Sample:
        taken.append(subject.contender.name)
        return {"speed": len(taken)}

    rows, problems, stand = run(Case("any", "any", take), [OURS, ORIGINAL, TUBES], rounds=3)

    assert " ".join(taken) == "disque_trio original original disque_trio disque_trio original"
    assert [sample["speed"] for sample in rows["any"]["original"]] == [2, 3, 6]
    assert not problems
    assert stand.started == ["disque_trio", "original"]


def test_a_fresh_place_has_a_server_for_each_sample() -> None:
    case = Case("any", "any", lambda _subject, _size: {}, FRESH, rounds=2)

    _, _, stand = run(case, [OURS], rounds=5)

    assert stand.started == ["disque_trio"] * 2


def test_what_fails_once_is_measured_again_with_a_new_server() -> None:
    fails = iter([True, False])

    def take(_subject: Subject, _size: float) -> Sample:
        if next(fails):
            raise BenchmarkError("stands still")
        return {"speed": 1.0}

    rows, problems, stand = run(Case("any", "any", take), [OURS], rounds=1)

    assert rows == {"any": {"disque_trio": [{"speed": 1.0}]}}
    assert not problems
    assert stand.started == ["disque_trio"] * 2


def test_what_fails_again_is_told_and_the_others_go_on() -> None:
    def take(subject: Subject, _size: float) -> Sample:
        if subject.contender is ORIGINAL:
            raise BenchmarkError("stands still")
        return {"speed": 1.0}

    rows, problems, _ = run(Case("any", "any", take), [OURS, ORIGINAL], rounds=1)

    assert list(rows["any"]) == ["disque_trio"]
    assert problems == ["any: original: stands still"]


# What comes of it.


def test_a_ratio_above_one_is_better_whether_more_or_less_is() -> None:
    assert REPORT.ratio("add", SPEED, "original") == 0.5
    assert REPORT.ratio("add", CPU, "original") == 0.5
    assert SPEED.ratio(300, 100) == CPU.ratio(100, 300) == 3
    assert CPU.ratio(0, 5) is None


@pytest.mark.parametrize(
    ("target", "found", "is_met"),
    [
        (Target("add", "speed", Demand.RATIO, 0.5), 0.5, True),
        (Target("add", "speed", Demand.RATIO, 0.6), 0.5, False),
        (Target("add", "cpu", Demand.EXCESS, 5.0), 5.0, True),
        (Target("add", "cpu", Demand.EXCESS, 4.0), 5.0, False),
        (Target("add", "cpu", Demand.GROWTH, 1.2, since="add"), 1.0, True),
        (Target("add", "cpu", Demand.GROWTH, 0.9, since="add"), 1.0, False),
        (Target("add", "speed", Demand.VALUE, 150), 150, True),
        (Target("add", "speed", Demand.VALUE, 151), 150, False),
        (Target("add", "cpu", Demand.LIMIT, 11), 10, True),
        (Target("add", "cpu", Demand.LIMIT, 10), 10, False),
        (Target("add", "cpu", Demand.GROWTH, 1.2, since="get"), None, False),
    ],
)
def test_a_target_is_met_or_not_by_medians(
    target: Target, found: float | None, is_met: bool
) -> None:
    [verdict] = reports.verdicts(REPORT, [ADD], [target])

    assert verdict.found == found
    assert verdict.is_met == is_met


def test_a_report_comes_back_from_its_file() -> None:
    facts = json.loads(json.dumps(reports.as_json(REPORT, [ADD])))

    assert reports.from_json(facts) == REPORT
    assert facts["medians"]["add"]["disque_trio"] == {"speed": 150.0, "cpu": 10.0}
    assert facts["ratios"] == {"original": {"add/speed": 0.5, "add/cpu": 0.5}}


def test_a_report_is_told_again_on_a_page(tmp_path: Path) -> None:
    path, page = tmp_path / "bench.json", tmp_path / "speed.md"
    path.write_text(json.dumps(reports.as_json(REPORT, [ADD])), "utf-8")
    page.write_text("before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n")

    assert main(["--from", str(path), "--page", str(page)]) == 0

    text = page.read_text("utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| ADDJOB | ops/s | 150 ±267 % | 300 | 0.50 |" in text
    assert "| ADDJOB, ops/s | ≥ 0.90 × the original | 0.50 | not met |" in text
    assert "<svg" in page.with_suffix(".svg").read_text("utf-8")


def test_a_picture_has_a_dot_for_each_ratio_and_needs_nothing_else() -> None:
    picture = drawing.picture(REPORT, [ADD])

    assert picture.count("<title>original: 0.50</title>") == len(RATE)
    assert "ADDJOB" in picture
    assert "href" not in picture
    assert "url(" not in picture


def test_the_pure_form_is_not_taken_for_the_original() -> None:
    report = reports.make(REPORT.rows, [OURS, attrs.evolve(OURS, name=PURE), ORIGINAL], 1.0)

    assert report.original == "original"


# History.


def record(path: Path, speed: float, **changes: Any) -> list[str]:
    """Record the report, and tell what has fallen when ours is as fast as that."""
    history.record(attrs.evolve(REPORT, **changes), [ADD], path)
    now = report_of([{"speed": speed, "cpu": 10.0}], [{"speed": 300.0, "cpu": 5.0}])
    return history.regressions(now, [ADD], history.read(path))


def test_a_ratio_that_fell_by_over_a_tenth_is_told(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"

    assert record(path, 136) == []
    assert record(path, 134) == [
        "add/speed: 0.45 times as good as original, and 0.50 times at abc1234 (2026-01-01 00:00)"
    ]
    assert len(history.read(path)) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"machine": {"processor": "another", "cores": 2}},
        {"versions": {"disque_trio": "0.1.0", "original": "2.0"}},
        {"versions": {"disque_trio": "0.1.0"}},
        {"size": 0.5},
        {"versions": {"disque_trio": "0.1.0", PURE: "0.1.0", "original": "1.0"}},
    ],
)
def test_what_was_measured_otherwise_is_not_compared(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    assert record(tmp_path / "history.jsonl", 10, **changes) == []


def test_the_history_that_we_keep_can_be_read() -> None:
    for line in history.read():
        assert {"date", "commit", "machine", "versions", "size", "ratios"} == set(line)


# How others are spoken to.


def test_answers_of_beanstalkd_are_told_apart_however_they_are_cut() -> None:
    reader = BeanstalkReader()
    data = b"INSERTED 7\r\nRESERVED 7 4\r\na\r\nb\r\nDELETED\r\nOUT_OF_MEMORY\r\n"

    found = []
    for byte in data:
        reader.feed(bytes([byte]))
        while (answer := reader.gets()) is not False:
            found.append(answer)

    assert found[:3] == [b"INSERTED 7", (b"7", b"a\r\nb"), b"DELETED"]
    assert repr(found[3]) == "ReplyError('OUT_OF_MEMORY')"


def test_bodies_are_found_in_each_answer_of_redis() -> None:
    answers = [[b"a", b"b"], [b"queue:x", b"c"], [b"queue:x", [b"d", b"e"]], None]

    assert b"".join(body for _, body in Redis().jobs(answers)) == b"abcde"
