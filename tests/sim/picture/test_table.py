from collections.abc import Sequence
from typing import Any

import pytest

from disque_trio.sim.picture.table import Slice, Table, from_zero
from disque_trio.tracing.rows import Row
from tests.sim.picture import examples

RUNS = {
    "calm": examples.calm(),
    "crash": examples.crash(),
    "split brain": examples.split_brain(),
    "large": examples.large(jobs=8),
}


def table() -> Table:
    return Table(3, ["n1", "n2", "n3"])


def joined(slices: Sequence[Slice]) -> dict[str, Any]:
    """What a browser has after these slices."""
    run: dict[str, Any] = {"rows": {}, "lifelines": []}
    for each in slices:
        run["lifelines"] += [*each["nodes"], *each["agents"]]
        for name, values in each["rows"].items():
            run["rows"].setdefault(name, []).extend(values)
        for name in ("words", "jobs", "moves", "shared", "operations", "repeats"):
            run.setdefault(name, []).extend(each[name])
        for row, job in zip(each["known_rows"][::2], each["known_rows"][1::2], strict=True):
            run["rows"]["job"][row] = job
        for number, queue, wanted in each["known_jobs"]:
            run["jobs"][number] = (run["jobs"][number][0], queue, wanted)
        run["bars"], run["end"] = each["bars"], each["end"]
    return run


def named(run: dict[str, Any]) -> dict[str, Any]:
    """The same without numbers, for these depend on the order in which names came."""
    jobs, words = [job[0] for job in run["jobs"]], run["words"]
    columns = run["rows"]
    name = {-1: None, **dict(enumerate(run["lifelines"]))}
    columns |= {key: [name[number] for number in columns[key]] for key in ("lifeline", "peer")}
    columns |= {key: [words[word] for word in columns[key]] for key in ("kind", "cause", "detail")}
    columns["job"] = [jobs[job] if job >= 0 else None for job in columns["job"]]
    moves = run["moves"]
    found = [moves[at : at + 5] for at in range(0, len(moves), 5)]
    return {
        "columns": columns,
        "jobs": sorted(run["jobs"]),
        "moves": [(row, jobs[job], name[node], *states) for row, job, node, *states in found],
        "repeats": [(jobs[job], *others) for job, *others in run["repeats"]],
        "bars": run["bars"],
        "end": run["end"],
    }


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("name", RUNS)
def test_slices_together_tell_what_one_tells(name: str, size: int) -> None:
    rows = RUNS[name]
    growing = table()

    slices = [growing.extend(rows[at : at + size]) for at in range(0, len(rows), size)]

    assert named(joined(slices)) == named(joined([table().extend(rows)]))


def test_a_slice_tells_nothing_twice() -> None:
    growing = table()
    growing.extend(examples.calm())

    again = growing.extend([], end=90_000_000)

    assert again == {
        **{name: [] for name in again if name not in {"rows", "end"}},
        "rows": {name: [] for name in again["rows"]},
        "end": 90_000_000,
    }


def test_a_job_is_named_when_its_add_is_answered() -> None:
    growing = Table(3, ["n1"])
    asks = Row(0, "add.invoke", "n1", queue="q", client="p1", ref=1, detail="replicate=2 body=b")
    first = growing.extend([asks])

    second = growing.extend([Row(5, "add.ok", "n1", "J", client="p1", ref=1)])

    assert (first["jobs"], first["rows"]["job"]) == ([], [-1])
    assert second["jobs"] == [("J", "q", 2)]
    assert second["known_rows"] == [0, 0]


def test_what_is_learned_of_a_job_later_is_told() -> None:
    growing = Table(3, ["n1", "n2"])
    growing.extend([Row(0, "recv", "n2", "J", peer="n1", cause="repljob")])

    later = growing.extend([Row(1, "hold", "n2", "J", "q", cause="copy", detail="replicate=3 a=1")])

    assert later["known_jobs"] == [(0, "q", 3)]


def test_a_node_that_joins_is_a_lifeline_from_then_on() -> None:
    growing = table()
    growing.extend([Row(0, "hold", "n1", "J", client="")])

    slice = growing.extend([Row(1, "start", "n4"), Row(2, "serve", "n4", "J", client="c1")])

    assert (slice["nodes"], slice["agents"]) == (["n4"], ["c1"])
    assert slice["rows"]["lifeline"] == [3, 3]


def test_a_fault_lasts_until_the_end_that_is_told() -> None:
    growing = table()
    growing.extend([Row(0, "crash", "n2", cause="kill")])

    assert [bar[1:3] for bar in growing.extend([], end=7)["bars"]] == [(0, 7)]


def test_calendar_time_becomes_time_since_the_first_row() -> None:
    noon = 1_760_000_000_000_000

    assert from_zero([Row(noon, "start"), Row(noon + 4, "end")]) == (
        noon, [Row(0, "start"), Row(4, "end")]
    )  # fmt: skip
    assert from_zero([Row(3, "start")]) == (0, [Row(3, "start")])
