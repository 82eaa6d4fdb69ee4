"""What a sweep keeps in a lake: when it counts, and how often."""

from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest

from disque_trio.cli.sim import lakestore
from disque_trio.cli.sim.collector import Collected
from disque_trio.cli.sim.execution import Finding, Result
from disque_trio.cli.sim.lakestore import LakeStore
from disque_trio.cli.sim.pool import Done, Task
from disque_trio.cli.sim.sources import scenario_from
from disque_trio.cli.sim.tally import Tally
from disque_trio.pipeline.lake import asking
from disque_trio.pipeline.lake.duck import Duck
from disque_trio.pipeline.lake.store import Lake, LakeError
from disque_trio.pipeline.report import facts
from disque_trio.pipeline.run_writer import RunWriter
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row
from tests.cluster.processes import SOON_S, eventually
from tests.pipeline.test_sweep_on_cluster import scenario

BAD = (Finding("determinism", "two runs of one seed differ"),)


def store(folder: Path, sweep: str = "sweep") -> LakeStore:
    return LakeStore(str(folder / "lake"), sweep, {"calm": "v"})


def committed(folder: Path) -> int:
    return sum(part.rows for part in Lake.open(str(folder / "lake")).parts("results"))


def done(seed: int, *, is_ok: bool = True) -> Done:
    result = Result(
        scenario="calm", seed=seed, engine="heap", is_ok=is_ok, digest="ab" * 32, added=10,
        delivered=13, duplicates={"D1": 3}, findings=() if is_ok else BAD,
    )  # fmt: skip
    run = RunWriter.name_of("v", str(seed), result.digest)
    return Done(Task("calm", seed, "heap", 60), result, Collected(run, {"setack/queued": 2}))


def test_what_came_counts_after_a_while_though_nothing_else_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lakestore, "_PATIENCE_S", 0.05)
    keeping = store(tmp_path)

    keeping.add("calm", done(0))
    eventually(lambda: committed(tmp_path) == 1, SOON_S, "the first one counts")
    keeping.add("calm", done(1))
    eventually(lambda: committed(tmp_path) == 2, SOON_S, "the next one, too")

    keeping.close()
    keeping.close()
    assert committed(tmp_path) == 2


def piece(keeping: LakeStore, folder: Path, name: str, seeds: range) -> None:
    """Seeds that were run together on one machine, with their rows."""
    found = [done(seed) for seed in seeds]
    with RunWriter(str(folder / "lake"), "calm", name) as writer:
        for each in found:
            assert each.collected is not None
            plan = Plan(scenario="calm", seed=each.result.seed, nodes=1)
            writer.write(plan, each.collected.run, [Row(1, "end"), Row(2, "hold")], None)
    for each in found:
        assert each.collected is not None
        is_last = each is found[-1]
        parts = writer.parts if is_last else ()
        collected = attrs.evolve(each.collected, parts=parts, is_last=is_last)
        keeping.add("calm", attrs.evolve(each, collected=collected))


def seeds_in(folder: Path, table: str) -> list[int]:
    lake = Lake.open(str(folder / "lake"))
    tables = (lake.read(part, ["seed"]) for part in lake.parts(table))
    return sorted(seed for found in tables for seed in found["seed"].to_pylist())


def test_a_seed_that_two_sweeps_have_run_at_once_counts_once_with_its_rows(tmp_path: Path) -> None:
    one, other = store(tmp_path, "one"), store(tmp_path, "other")
    piece(one, tmp_path, "one", range(4))
    piece(other, tmp_path, "other-1", range(2, 6))  # some of its seeds
    piece(other, tmp_path, "other-2", range(2))  # all of them
    piece(other, tmp_path, "other-3", range(6, 8))  # none

    one.close()
    other.close()

    wanted = list(range(8))
    assert seeds_in(tmp_path, "results") == seeds_in(tmp_path, "traces") == wanted
    assert seeds_in(tmp_path, "rows") == sorted(wanted * 2)
    assert (one.elsewhere, other.elsewhere) == (0, 4)


def test_a_sweep_sees_what_another_has_stored_since_it_looked_last(tmp_path: Path) -> None:
    one, other = store(tmp_path, "one"), store(tmp_path, "other")
    for seed in range(6):
        for keeping in (one, other) if seed % 2 else (other, one):
            piece(keeping, tmp_path, f"{seed}-{id(keeping)}", range(seed, seed + 1))
            with keeping._lock:
                keeping._commit()

    assert seeds_in(tmp_path, "results") == seeds_in(tmp_path, "traces") == list(range(6))
    assert (one.elsewhere, other.elsewhere) == (3, 3)


def test_a_seed_that_only_one_of_two_sweeps_finds_unrepeatable_has_failed_once(
    spark: Any, tmp_path: Path
) -> None:
    one, other = store(tmp_path, "one"), store(tmp_path, "other")
    for keeping in (one, other):
        keeping.add("calm", done(0))
    other.add("calm", attrs.evolve(done(0, is_ok=False), collected=None))
    one.close()
    other.close()

    asking.attach(spark, Lake.open(str(tmp_path / "lake")), "seeds")

    (row,) = spark.sql("SELECT sum(seeds) AS seeds, sum(failed) AS failed FROM seeds").collect()
    assert tuple(row) == (1, 1)


def test_other_code_has_results_of_its_own(tmp_path: Path) -> None:
    other = LakeStore(str(tmp_path / "lake"), "other", {"calm": "w"})
    for keeping in (store(tmp_path), other):
        keeping.add("calm", done(0))
        keeping.close()

    assert seeds_in(tmp_path, "results") == [0, 0]
    assert other.elsewhere == 0


def test_what_a_seed_costs_is_known_from_other_code_of_the_same_engine(tmp_path: Path) -> None:
    keeping = store(tmp_path)
    for seed, engine in ((0, "heap"), (1, "trio")):
        result = attrs.evolve(done(seed).result, seconds=seed + 2.5, engine=engine)
        keeping.add("calm", attrs.evolve(done(seed), result=result))
    keeping.close()

    calm = scenario_from(scenario(tmp_path, "calm"))
    later = LakeStore(str(tmp_path / "lake"), "later", {"x/calm.toml": "w"}, {"x/calm.toml": calm})

    assert list(later.kept()) == []
    assert later.costs("heap") == {("x/calm.toml", 0): 2.5}


def test_marks_that_no_seed_of_the_latest_code_has_hit_are_missed(tmp_path: Path) -> None:
    calm = scenario_from(scenario(tmp_path, "calm"))
    expect = attrs.evolve(calm.expect, sometimes=("queue.full", "node.killed", "message.lost"))
    expecting = attrs.evolve(calm, expect=expect)
    for number, version in enumerate(("v", "w")):
        keeping = LakeStore(str(tmp_path / "lake"), version, {"calm": version}, {"calm": expecting})
        for seed in range(2):
            hit = {"node.killed": 1} if version == "v" else {}
            result = attrs.evolve(done(seed).result, marks={"message.lost": seed + number, **hit})
            keeping.add("calm", attrs.evolve(done(seed), result=result))
        keeping.close()

    lake = Lake.open(str(tmp_path / "lake"))
    with closing(Duck(lake, facts.USED)) as duck:
        told = facts.figures(duck.facts, lake)

    assert told.missed == [("calm", 2, ["node.killed", "queue.full"])]
    assert [result.marks for _, result in keeping.kept()] == [
        {"message.lost": 1},
        {"message.lost": 2},
    ]


def test_what_could_not_be_written_is_told_when_the_next_result_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lakestore, "_PATIENCE_S", 0.01)
    keeping = store(tmp_path)
    in_the_way = tmp_path / "lake" / "relation=results"
    in_the_way.touch()

    keeping.add("calm", done(0))
    eventually(lambda: keeping._trouble is not None, SOON_S, "it was tried")

    with pytest.raises(LakeError, match="cannot write to the lake"):
        keeping.add("calm", done(1))
    in_the_way.unlink()
    keeping.close()
    assert committed(tmp_path) == 1, "what is kept in memory is not lost yet"


def test_a_seed_whose_second_run_differs_counts_once(spark: Any, tmp_path: Path) -> None:
    keeping = store(tmp_path)
    for seed in range(4):
        keeping.add("calm", done(seed))
    keeping.add("calm", attrs.evolve(done(2, is_ok=False), collected=None))
    keeping.close()

    asking.attach(spark, Lake.open(str(tmp_path / "lake")), "seeds causes failures")

    def ask(sql: str) -> tuple[Any, ...]:
        (row,) = spark.sql(sql).collect()
        return tuple(row)

    assert ask("SELECT seeds, failed, jobs, duplicates FROM seeds") == (4, 1, 40, 12)
    assert ask("SELECT duplicates, jobs FROM causes") == (12, 40)
    assert ask("SELECT property, seeds, times, seed FROM failures") == ("determinism", 1, 1, 2)
    assert ask("SELECT count(DISTINCT run) FROM results") == (4,)


def test_a_failure_that_two_sweeps_have_found_counts_once(tmp_path: Path) -> None:
    tally = Tally(scenario_from(scenario(tmp_path, "calm")))
    passed, failed = done(7).result, done(7, is_ok=False).result

    for result in (passed, failed, failed):
        tally.add(result)

    assert (len(tally.seeds), tally.failed, tally.sums["added"]) == (1, [failed], 10)
