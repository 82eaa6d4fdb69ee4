"""Every body that a recorded version has written is read, and its jobs run (docs/versions.md)."""

import json
from typing import Any

import pytest

from disque_trio.statemachine.base import FORMAT
from disque_trio.worker.batches import COLLECT
from disque_trio.worker.engine.records import Done
from disque_trio.worker.flows.building import FLOW
from tests.conformance.versions import BODIES, fields_of, place, samples, told
from tests.conformance.versions.bodies import READERS, RECORDS, app_at, bodies
from tests.worker.runs import outcome
from tests.worker.test_enqueue import node_that_adds

RECORD = (
    "the library writes other bodies: raise FORMAT in statemachine/base.py, unless no released "
    "version has it, and record them: python -m tests.conformance.versions (docs/versions.md)"
)
RECORDED = {
    f"{folder.name}-{number}": json.loads(line)
    for folder in samples()
    if (folder / BODIES).exists()
    for number, line in enumerate((folder / BODIES).read_text().splitlines())
}


@pytest.mark.parametrize("sample", RECORDED)
def test_each_recorded_body_says_what_it_said(sample: str) -> None:
    row = RECORDED[sample]
    assert told(READERS[row["kind"]](bytes.fromhex(row["hex"]))) == row["reads"]


@pytest.mark.parametrize(
    "sample",
    [
        name
        for name, row in RECORDED.items()
        if row["kind"] == "job" and row["reads"]["task"] not in (COLLECT, FLOW)  # wait for members
    ],
)
def test_each_recorded_job_of_a_task_runs(sample: str) -> None:
    with node_that_adds() as node:
        assert outcome(app_at(node)[0], bytes.fromhex(RECORDED[sample]["hex"])) == Done()


def test_what_the_library_writes_today_is_recorded() -> None:
    recorded = [json.loads(line) for line in (place(FORMAT) / BODIES).read_text().splitlines()]

    assert [(row["kind"], bytes.fromhex(row["hex"])) for row in recorded] == [*bodies()], RECORD


def test_each_field_of_each_record_has_a_value_in_some_body() -> None:
    found: dict[str, set[str]] = {}

    def look(said: Any) -> None:
        for each in said.values() if isinstance(said, dict) else said:
            if isinstance(each, dict | list):
                look(each)
        if isinstance(said, dict) and "is" in said:
            found.setdefault(said["is"], set()).update(said)

    look([told(READERS[kind](body)) for kind, body in bodies()])
    kinds = {kind.__name__: kind for kind in RECORDS}
    assert set(found) == set(kinds), RECORD
    for name, known in found.items():
        assert fields_of(kinds[name]).keys() - known - {"v", "version"} == set(), (name, RECORD)
