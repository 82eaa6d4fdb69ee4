"""A sweep on Spark is the sweep of one process, in another place."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from disque_trio.cli.frame import INTERRUPTED, USAGE
from disque_trio.cli.sim import main
from disque_trio.cli.sim.cutting import Piece
from disque_trio.cli.sim.outcomes import PASSED, VIOLATED
from disque_trio.cli.sim.pool import Done, Task
from disque_trio.cli.sim.progress import Progress
from disque_trio.cli.sim.spark import run_piece
from disque_trio.pipeline.coverage import Coverage
from disque_trio.pipeline.lake.store import Lake
from disque_trio.sim.scenarios.scenario import Scenario
from disque_trio.tracing.rows import Row
from tests.cluster.processes import SOON_S, eventually
from tests.pipeline.test_sweep_on_cluster import lines, scenario

Capture = pytest.CaptureFixture[str]
SPARK = ["--spark", "local[2]"]


@pytest.fixture
def calm(tmp_path: Path) -> str:
    return scenario(tmp_path, "calm")


@pytest.fixture
def careless(tmp_path: Path) -> str:
    return scenario(tmp_path, "careless", 2)


def results(lake: Path, table: str = "results") -> list[dict[str, Any]]:
    """Rows of a table, in an order that does not depend on who came first."""
    found: list[dict[str, Any]] = []
    opened = Lake.open(str(lake))
    for part in opened.parts(table):
        found += opened.read(part).to_pylist()
    return sorted(found, key=lambda row: (row["seed"], row["run"], row.get("seq", 0)))


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{key: row[key] for key in row if key not in names} for row in rows]


def test_on_spark_and_in_one_process_a_sweep_brings_in_the_same(
    spark: Any, careless: str, tmp_path: Path, capsys: Capture
) -> None:
    arguments = ["sweep", careless, "--seeds", "0:12", "--trace-share", "0.3", "--json"]
    here, there = tmp_path / "here", tmp_path / "there"

    assert main([*arguments, "--jobs", "1", "--lake", str(here)]) == VIOLATED
    (told,) = json.loads(capsys.readouterr().out)
    assert main([*arguments, *SPARK, "--lake", str(there)]) == VIOLATED
    (told_of_spark,) = json.loads(capsys.readouterr().out)

    for facts in (told, told_of_spark):
        facts["cpu_seconds"] = 0
        facts["failed"].sort(key=lambda each: each["seed"])
    assert told == told_of_spark
    found = results(here)
    assert [row["seed"] for row in found] == list(range(12))
    assert all(row["coverage"] and row["python"] and row["version"] for row in found)
    varying = ("at", "sweep", "seconds")
    assert without(found, *varying) == without(results(there), *varying)
    rows = results(here, "rows")
    assert rows == results(there, "rows")
    failed = {row["seed"] for row in found if not row["ok"]}
    kept = {row["seed"] for row in found if row["plan"]}
    assert failed < kept == {row["seed"] for row in rows} < set(range(12))
    assert {row["seed"] for row in results(here, "traces")} == kept


def test_each_scenario_has_a_traced_run_however_small_the_share(
    calm: str, tmp_path: Path, capsys: Capture
) -> None:
    other = scenario(tmp_path, "other")
    arguments = ["sweep", calm, other, "--seeds", "3:9", "--jobs", "1", "--trace-share", "1e-9"]

    for _ in range(2):  # the second one finds all seeds there
        assert main([*arguments, "--lake", str(tmp_path / "lake")]) == PASSED

    lake = Lake.open(str(tmp_path / "lake"))
    traced = [part.path.split("/")[1] for part in lake.parts("traces")]
    assert sorted(traced) == ["scenario=calm", "scenario=other"]
    assert {row["seed"] for row in results(tmp_path / "lake", "traces")} == {3}


def test_a_lake_lets_a_sweep_go_on_where_it_stopped(
    spark: Any, calm: str, tmp_path: Path, capsys: Capture
) -> None:
    lake = str(tmp_path / "lake")
    main(["sweep", calm, "--seeds", "0:4", "--jobs", "1", "--lake", lake])
    capsys.readouterr()

    assert main(["sweep", calm, "--seeds", "0:6", "--lake", lake, *SPARK]) == PASSED

    captured = capsys.readouterr()
    assert "4 seeds done before, 2 to go" in captured.err
    assert "Spark runs at local[2], processors: 2" in captured.err
    assert "2 seeds in" in captured.out
    assert [row["seed"] for row in results(tmp_path / "lake")] == list(range(6))
    assert len({row["sweep"] for row in results(tmp_path / "lake")}) == 2


def test_other_code_makes_other_runs_of_the_same_history(
    careless: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["sweep", careless, "--seeds", "0:2", "--jobs", "1"]
    arguments += ["--lake", str(tmp_path / "lake"), "--trace-share", "1"]
    main(arguments)
    monkeypatch.setattr("disque_trio.cli.sim.sweep.code_digest", lambda: "other")
    main(arguments)

    found = results(tmp_path / "lake")

    assert [row["seed"] for row in found] == [0, 0, 1, 1]
    assert len({row["digest"] for row in found}) == 2
    assert {row["run"] for row in found} == {
        row["run"] for row in results(tmp_path / "lake", "rows")
    }
    assert len({row["run"] for row in found}) == 4


def after(count: int, act: Callable[[], None]) -> Callable[..., None]:
    """A step of the progress bar that does something when so many seeds are done."""
    seen = []

    def step(_self: Progress, **_facts: bool) -> None:
        seen.append(1)
        if len(seen) == count:
            act()

    return step


def interrupt() -> None:
    raise KeyboardInterrupt


def test_ctrl_c_ends_the_jobs_and_keeps_what_is_finished(
    spark: Any, calm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    keeping = ["--out", str(tmp_path / "out"), "--lake", str(tmp_path / "lake")]
    monkeypatch.setattr(Progress, "step", after(3, interrupt))
    # The first pieces have a seed each: whichever comes first is whole.
    monkeypatch.setattr("disque_trio.cli.sim.cutting._MOST_TRIED", 1)

    status = main(["sweep", calm, "--seeds", "0:100000", *SPARK, *keeping])

    assert status == INTERRUPTED
    assert "interrupted after 3 seeds; kept in" in capsys.readouterr().err
    assert len(lines(tmp_path)) == 3
    kept = len(results(tmp_path / "lake"))
    assert 2 <= kept <= 3, "the third may be of a piece that was not told to its end"
    tracker = spark.sparkContext.statusTracker()
    eventually(lambda: not tracker.getActiveJobsIds(), SOON_S, "Spark has no more of its jobs")


def test_what_has_come_is_kept_before_spark_is_ended(
    calm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has pressed Ctrl-C may lose patience."""
    kept = []

    def run_all(tasks: Iterable[Task], scenarios: Mapping[str, Scenario], *_: object) -> Any:
        try:
            for task in tasks:
                yield from in_one_piece([task], scenarios)
        finally:
            kept.append(len(results(tmp_path / "lake")))

    monkeypatch.setattr("disque_trio.cli.sim.spark.run_all", run_all)
    monkeypatch.setattr(Progress, "step", after(3, interrupt))

    main(["sweep", calm, "--seeds", "0:5", *SPARK, "--lake", str(tmp_path / "lake")])

    assert kept == [3]


def test_a_sweep_can_be_stopped_by_its_first_failures(
    spark: Any, careless: str, capsys: Capture
) -> None:
    arguments = ["sweep", careless, "--seeds", "0:100000", "--max-failures", "2"]

    assert main([*arguments, *SPARK]) == VIOLATED

    captured = capsys.readouterr()
    assert captured.err.count("again with:") == 2
    assert "stopped after" in captured.err


def test_a_lake_has_the_failures_that_stopped_the_sweep(
    careless: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("disque_trio.cli.sim.spark.run_all", in_one_piece)
    keeping = ["--recheck", "0", "--lake", str(tmp_path / "lake")]

    status = main(["sweep", careless, "--seeds", "0:12", "--max-failures", "1", *SPARK, *keeping])

    assert status == VIOLATED
    assert capsys.readouterr().err.count("again with:") == 1
    found = results(tmp_path / "lake")
    assert [row["seed"] for row in found] == list(range(12))
    failed = {row["run"] for row in found if not row["ok"]}
    assert failed == {row["run"] for row in results(tmp_path / "lake", "traces")}


def in_one_piece(
    tasks: Iterable[Task], scenarios: Mapping[str, Scenario], *_: object
) -> Iterator[Done]:
    """What Spark would do, here."""
    together = tuple(tasks)
    yield from run_piece(Piece(1, scenarios[together[0].path], together)).done


def test_a_sweep_is_told_what_keeps_an_executor_from_its_work(
    spark: Any, careless: str, tmp_path: Path, capsys: Capture
) -> None:
    lake = tmp_path / "lake"
    Lake.open(str(lake), create=True)
    Path(lake, "relation=rows").write_text("where a folder should be")

    status = main(["sweep", careless, "--seeds", "0:40", "--lake", str(lake), *SPARK])

    assert status == USAGE
    assert f"cannot write to the lake {lake}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--spark", "nonsense"], "nonsense is not a master of Spark"),
        (["--trace-share", "0.1"], "--trace-share needs --lake"),
        (["--spark-conf", "spark.x=1"], "--spark-conf needs --spark"),
        (["--spark", "local", "--spark-conf", "x=1"], "'x=1' is not a setting of Spark"),
        (["--spark", "local", "--jobs", "2"], "not allowed with argument"),
        (["--lake", "."], "is not a lake, and not empty"),
    ],
)
def test_what_makes_no_sense_is_refused(
    options: list[str], complaint: str, calm: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(calm).parent)

    assert main(["sweep", calm, "--seeds", "0:1", *options]) == USAGE

    assert complaint in capsys.readouterr().err


def test_a_cluster_that_is_not_there_is_named(
    calm: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disque_trio.pipeline.session._active", lambda: None)

    assert main(["sweep", calm, "--seeds", "0:1", "--spark", "spark://127.0.0.1:1"]) == USAGE

    told = "disque-trio sim: no Spark master answers at spark://127.0.0.1:1: Connection refused"
    assert told in capsys.readouterr().err


def test_coverage_is_which_message_came_in_which_state() -> None:
    coverage = Coverage()
    for row in (
        Row(time=1, kind="recv", node="n1", job="J", cause="repljob"),
        Row(time=2, kind="hold", node="n1", job="J"),
        Row(time=3, kind="queue", node="n1", job="J"),
        Row(time=4, kind="recv", node="n1", job="J", cause="queued"),
        Row(time=5, kind="recv", node="n2", job="J", cause="queued"),
        Row(time=6, kind="recv", node="n1", cause="yourjobs", detail="jobs=J,K holders=n1"),
        Row(time=7, kind="acked", node="n1", job="J"),
        Row(time=8, kind="recv", node="n1", job="J", cause="setack"),
        Row(time=9, kind="crash", node="n1"),
        Row(time=9, kind="recv", node="n1", job="J", cause="setack"),
        Row(time=9, kind="recv", node="n1", cause="needjobs", queue="q", detail="count=1"),
    ):
        coverage.see(row)

    assert coverage.counts == {
        "repljob/unknown": 1,
        "queued/queued": 1,
        "queued/unknown": 1,
        "yourjobs/queued": 1,
        "yourjobs/unknown": 1,
        "setack/acked": 1,
        "setack/unknown": 1,
    }
