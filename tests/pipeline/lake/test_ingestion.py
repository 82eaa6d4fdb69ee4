"""Files into a lake: what counts, what is known already, and what is no trace."""

import json
from pathlib import Path
from typing import Any

import pytest

from disque_trio.pipeline.lake import ingestion, reading, shape
from disque_trio.pipeline.lake.ingestion import ingest
from disque_trio.pipeline.lake.reading import Piece
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.lake.survey import BadFileError, survey
from disque_trio.sim.scenarios import plan_file
from disque_trio.sim.traces import files as traces_files
from disque_trio.tracing.jsonlines import line_of
from disque_trio.tracing.rows import Row
from disque_trio.tracing.sampling import heading
from tests.pipeline.lake.runs import traced
from tests.sim.mutants.plans import conditions

ROWS = [Row(number, "hold", "a1", f"J{number}", "q", cause="add", mono=7) for number in range(50)]


@pytest.fixture
def store(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"), create=True)


def lines(path: Path, rows: list[Row]) -> str:
    path.write_bytes(b"".join(line_of(row) for row in rows))
    return str(path)


def content(lake: Lake) -> list[Row]:
    """All rows, as they were written."""
    found = [
        Row(**{**facts, "clock": tuple(facts["clock"])})
        for part in lake.parts("rows")
        for facts in lake.read(part, list(shape.OF_ROW)).to_pylist()
    ]
    return sorted(found, key=lambda row: row.time)


def test_a_trace_comes_in_as_it_is_and_a_file_counts_once(
    spark: Any, store: Lake, tmp_path: Path
) -> None:
    trace = lines(tmp_path / "one.jsonl", ROWS)
    same = lines(tmp_path / "same.jsonl", ROWS)

    first = ingest(spark, store, [trace, same])
    second = ingest(spark, store, [same, trace])

    assert (first.rows, first.known, first.bad) == (50, (same,), {})
    assert (second.rows, second.known, second.bad) == (0, (same, trace), {})
    assert content(store) == ROWS


def test_of_a_trace_that_has_grown_only_the_rest_is_read(
    spark: Any, store: Lake, tmp_path: Path
) -> None:
    trace = tmp_path / "node.jsonl"
    lines(trace, ROWS[:20])
    assert ingest(spark, store, [str(trace)]).rows == 20
    trace.write_bytes(trace.read_bytes() + line_of(ROWS[20])[:-5])  # it is in the midst of a line
    assert ingest(spark, store, [str(trace)]).rows == 0
    lines(trace, ROWS)

    assert ingest(spark, store, [str(trace)]).rows == 30
    assert content(store) == ROWS


def test_a_trace_that_was_rotated_counts_once_under_its_new_name(
    spark: Any, store: Lake, tmp_path: Path
) -> None:
    folder = tmp_path / "node"
    folder.mkdir()
    lines(folder / "trace.jsonl", ROWS[:20])
    assert ingest(spark, store, [str(folder)]).rows == 20
    lines(folder / "trace.jsonl.2", ROWS[:30])
    lines(folder / "trace.jsonl.1", ROWS[30:40])
    lines(folder / "trace.jsonl", ROWS[40:])

    assert ingest(spark, store, [str(folder)]).rows == 30
    assert ingest(spark, store, [str(folder)]).rows == 0
    assert content(store) == ROWS


def test_a_sample_is_a_run_of_its_own_whose_name_says_so(
    spark: Any, store: Lake, tmp_path: Path
) -> None:
    folder = tmp_path / "nodes"
    folder.mkdir()
    lines(folder / "whole.jsonl", ROWS[:10])
    lines(folder / "sampled.jsonl.1", [heading(ROWS[10], 100), *ROWS[10:20]])
    lines(folder / "sampled.jsonl", [heading(ROWS[20], 100), *ROWS[20:30]])
    lines(folder / "wrong.jsonl", [Row(1, "sample", detail="one-in=0")])

    outcome = ingest(spark, store, [str(folder)], run="berlin")

    assert {Path(path).name: why for path, why in outcome.bad.items()} == {
        "wrong.jsonl": "line 1: a sample says one-in=N, with N from 1 to 262144, not 'one-in=0'"
    }
    assert {Path(each.name).name: (each.run, each.rows) for each in outcome.taken} == {
        "whole.jsonl": ("berlin", 10),
        "sampled.jsonl.1": ("berlin-one-in-100", 10),
        "sampled.jsonl": ("berlin-one-in-100", 10),
    }
    assert content(store) == ROWS[:30]
    lines(folder / "sampled.jsonl", [heading(ROWS[20], 100), *ROWS[20:40]])
    assert ingest(spark, store, [str(folder)], run="berlin").rows == 10
    assert content(store) == ROWS[:40]


def test_a_file_that_is_rotated_while_it_is_read_is_not_taken_for_the_one_that_was_looked_at(
    spark: Any, store: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "trace.jsonl"
    lines(trace, ROWS[:20])
    surveyed = ingestion._surveyed

    def meanwhile(*args: Any) -> Any:
        found = surveyed(*args)
        trace.rename(tmp_path / "trace.jsonl.1")
        lines(trace, ROWS[20:])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(ingestion, "_surveyed", meanwhile)
        outcome = ingest(spark, store, [str(trace)])

    assert "was moved or replaced while it was read" in outcome.bad[str(trace)]
    assert content(store) == []
    assert ingest(spark, store, [str(tmp_path / "trace.jsonl.1"), str(trace)]).rows == 50
    assert content(store) == ROWS


def test_bad_files_are_named_and_the_others_are_taken(
    spark: Any, store: Lake, tmp_path: Path
) -> None:
    good = lines(tmp_path / "good.jsonl", ROWS)
    bad = {
        "gone.jsonl": (None, "No such file or directory"),
        "cut.jsonl": (b'{"time":0,"kind":"plan","detail":PLAN}\n' + line_of(ROWS[0]), "truncated"),
        "torn.jsonl": (b'{"time":0,"kind":"plan","det', "its first line is incomplete"),
        "text.jsonl": (b"hello\n", "line 1: not JSON: Expecting value"),
        "other.jsonl": (b'{"a": 1}\n', "line 1: it is neither a row of a trace nor a result"),
        "late.jsonl": (line_of(ROWS[1]) * 3 + b'{"time": 1}\n', "line 4: a row is an object with"),
        "type.jsonl": (line_of(ROWS[2]) + b'{"time":1,"kind":5}\n', "line 2: 'kind' cannot be 5"),
        "more.jsonl": (line_of(ROWS[3]) + b'{"time":1,"kind":"x","y":1}\n', "line 2: a row has no"),
        "plan.jsonl": (b'{"time":0,"kind":"plan","detail":"{}"}\n', "its plan"),
        "bad.parquet": (b"PAR1 is all it has", "Parquet"),
        "bad.arrow": (b"nothing", "Arrow"),
    }
    plan = json.dumps(plan_file.dump(conditions.calm(3))).encode()
    for name, (text, _) in bad.items():
        if text is not None:
            (tmp_path / name).write_bytes(text.replace(b"PLAN", plan))

    outcome = ingest(spark, store, [good, *(str(tmp_path / name) for name in bad)])

    assert {Path(path).name for path in outcome.bad} == set(bad)
    for name, (_, reason) in bad.items():
        assert reason in outcome.bad[str(tmp_path / name)], name
    assert outcome.rows == 50
    assert content(store) == ROWS


@pytest.mark.parametrize("form", ["jsonl", "arrow", "parquet"])
def test_a_simulated_trace_that_is_cut_off_is_no_run_until_it_is_whole(
    spark: Any, store: Lake, tmp_path: Path, form: str
) -> None:
    case = traced("calm", conditions.calm(3), tmp_path, form=form)
    whole, cut = Path(case.path), tmp_path / f"cut.{form}"
    writer = traces_files.create(str(cut), case.plan)
    writer.write(case.rows[:-1])
    writer.close()

    outcome = ingest(spark, store, [str(cut)])
    assert "is truncated" in outcome.bad[str(cut)]
    assert content(store) == []

    assert ingest(spark, store, [str(whole)]).rows == len(case.rows)
    assert "is truncated" in ingest(spark, store, [str(cut)]).bad[str(cut)]
    assert content(store) == sorted(case.rows, key=lambda row: row.time)


def test_a_run_that_an_error_of_a_node_has_ended_is_whole(
    spark: Any, store: Lake, tmp_path: Path
) -> None:
    trace = str(tmp_path / "failed.jsonl")
    writer = traces_files.create(trace, conditions.calm(3))
    writer.write([*ROWS, Row(60, "error", "n1", detail="ValueError")])
    writer.close()

    assert ingest(spark, store, [trace]).rows == 51


def test_of_an_older_copy_of_a_trace_nothing_is_new(
    spark: Any, store: Lake, tmp_path: Path
) -> None:
    ingest(spark, store, [lines(tmp_path / "node.jsonl", ROWS[:20])])
    ingest(spark, store, [lines(tmp_path / "node.jsonl", ROWS)])
    older = lines(tmp_path / "older.jsonl", ROWS[:30])

    assert ingest(spark, store, [older]).known == (older,)
    assert content(store) == ROWS


@pytest.mark.parametrize("begun", [b"", line_of(ROWS[0])[:9], line_of(ROWS[0])[:-1]])
def test_a_trace_without_whole_rows_is_left_for_the_next_time(
    spark: Any, store: Lake, tmp_path: Path, begun: bytes
) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_bytes(begun)

    outcome = ingest(spark, store, [str(trace)])
    assert (outcome.taken, outcome.known, outcome.bad) == ((), (), {})

    lines(trace, ROWS)
    assert ingest(spark, store, [str(trace)]).rows == 50


def test_what_begins_with_a_bad_file_is_bad_too(spark: Any, store: Lake, tmp_path: Path) -> None:
    spoilt = b"".join(line_of(row) for row in ROWS[:3]) + b'{"time": 1}\n'
    texts = {"a": spoilt, "b": spoilt, "c": spoilt + line_of(ROWS[4])}
    paths = [str(tmp_path / f"{name}.jsonl") for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        Path(path).write_bytes(text)

    outcome = ingest(spark, store, paths)

    assert list(outcome.bad) == paths
    assert len(set(outcome.bad.values())) == 1
    assert (outcome.taken, outcome.known) == ((), ())


def test_a_known_file_stays_known_beside_a_bad_one_of_its_first_line_and_size(
    spark: Any, store: Lake, tmp_path: Path
) -> None:
    good = lines(tmp_path / "trace.jsonl.1", ROWS[:3])
    ingest(spark, store, [good])
    spoilt = tmp_path / "spoilt.jsonl"
    spoilt.write_bytes(Path(good).read_bytes().replace(b'"J2"', b'"J2}'))

    outcome = ingest(spark, store, [str(spoilt), good])

    assert list(outcome.bad) == [str(spoilt)]
    assert outcome.known == (good,)


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_tables_and_folders_are_taken_too(
    spark: Any, store: Lake, tmp_path: Path, form: str
) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    case = traced("calm", conditions.calm(3), folder, form=form)

    outcome = ingest(spark, store, [str(folder)])

    assert outcome.rows == len(case.rows)
    assert content(store) == sorted(case.rows, key=lambda row: row.time)
    (trace,) = store.parts("traces")
    facts = store.read(trace).to_pylist()
    assert (facts[0]["seed"], facts[0]["is_live"], facts[0]["nodes"]) == (3, False, 5)
    assert ingest(spark, store, [str(folder)]).rows == 0


def test_results_of_a_sweep_are_taken_as_results(spark: Any, store: Lake, tmp_path: Path) -> None:
    result = {
        "scenario": "calm", "seed": 7, "engine": "heap", "is_ok": False, "digest": "ab" * 32,
        "duplicates": {"D1": 2}, "added": 9, "path": "calm.toml", "version": "v",
        "findings": [{"property": "S1", "text": "gone", "job": "J", "time": 3, "node": "n1"}],
    }  # fmt: skip
    file = tmp_path / "results.jsonl"
    file.write_text(json.dumps(result) + "\n")

    assert ingest(spark, store, [str(file)]).rows == 1

    (part,) = store.parts("results")
    (row,) = store.read(part).to_pylist()
    assert (row["run"], row["seed"], row["ok"], row["added"]) == ("ab" * 8, 7, False, 9)
    assert row["duplicates"] == [("D1", 2)]
    assert row["findings"] == result["findings"]


def test_a_file_in_pieces_has_every_row_once(store: Lake, tmp_path: Path) -> None:
    trace = lines(tmp_path / "one.jsonl", ROWS)
    size = Path(trace).stat().st_size
    at = len(b"".join(line_of(row) for row in ROWS[:17]))

    parts = [
        part
        for begin, end in ((0, at), (at, size))
        for part in reading.read(store, piece(trace, begin, end))
    ]
    store.commit(parts)

    assert [part.rows for part in parts] == [17, 33]
    assert content(store) == ROWS


def piece(path: str, begin: int, end: int) -> Piece:
    return Piece(
        path=path, sort="lines", begin=begin, end=end, scenario="live", run="r", seed=0,
        name=f"p{begin}",
    )  # fmt: skip


def test_the_line_of_a_mistake_is_counted_from_the_beginning_of_the_file(
    store: Lake, tmp_path: Path
) -> None:
    trace = tmp_path / "one.jsonl"
    lines(trace, ROWS)
    at = trace.stat().st_size
    trace.write_bytes(trace.read_bytes() + b'{"time":"now","kind":"x"}\n')

    with pytest.raises(BadFileError, match=r"^line 51: 'time' cannot be 'now'$"):
        reading.read(store, piece(str(trace), at, trace.stat().st_size))


def test_the_run_of_live_nodes_has_the_name_that_is_given(tmp_path: Path) -> None:
    trace = lines(tmp_path / "one.jsonl", ROWS)

    assert survey(trace, "berlin", []).run == "berlin"


def test_of_two_ingestions_at_once_of_the_same_files_each_file_counts_once(
    spark: Any, store: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = lines(tmp_path / "one.jsonl", ROWS[:20]), lines(tmp_path / "two.jsonl", ROWS[20:])
    commit, reads = ingestion._commit, list[int]()
    read_all = ingestion._read_all

    def meanwhile(*args: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(ingestion, "_commit", commit)
            assert ingest(spark, store, [one]).rows == 20
        monkeypatch.setattr(ingestion, "_commit", commit)
        return commit(*args)

    def counted(*args: Any) -> Any:
        found = read_all(*args)
        reads.append(len(found))
        return found

    monkeypatch.setattr(ingestion, "_commit", meanwhile)
    monkeypatch.setattr(ingestion, "_read_all", counted)
    outcome = ingest(spark, store, [one, other])

    assert (outcome.rows, outcome.known) == (30, (one,))
    assert content(store) == ROWS
    assert reads == [2, 1, 0], "nothing is read again"


def test_rows_of_live_nodes_lie_by_cluster_and_day_and_have_their_time(
    spark: Any, store: Lake, tmp_path: Path
) -> None:
    days = [Row(day * 86_400_000_000 + 5, "hold", "a1", f"J{day}") for day in (-1, 0, 20_000)]
    trace = lines(tmp_path / "one.jsonl", days)

    assert ingest(spark, store, [trace], run="berlin").rows == 3

    found = [row for part in store.parts("rows") for row in store.read(part).to_pylist()]
    told = sorted((str(row["date"]), row["cluster"], str(row["at"])[:19]) for row in found)
    assert told == [
        ("1969-12-31", "berlin", "1969-12-31 00:00:00"),
        ("1970-01-01", "berlin", "1970-01-01 00:00:00"),
        ("2024-10-04", "berlin", "2024-10-04 00:00:00"),
    ]
    assert len(store.parts("rows")) == 3
