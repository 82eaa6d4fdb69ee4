"""Every format of ours that was ever recorded is read completely (docs/versions.md)."""

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from disque_trio.statemachine.base import CAPABILITIES, FORMAT
from disque_trio.statemachine.messages import Batch, Frame, Many, singles
from disque_trio.statemachine.nodesfile import parse_nodes
from disque_trio.tracing.jsonlines import line_of, rows_of
from disque_trio.wire import frames as wire
from disque_trio.wire.frames import FrameParser
from tests.conformance.versions import (
    FRAMES,
    JOURNALS,
    MEANING,
    NODES,
    NUMBERS,
    TRACE,
    examples,
    place,
    samples,
    told,
)
from tests.conformance.versions.numbers import numbers
from tests.wire.journals import read

each = pytest.mark.parametrize("sample", samples(), ids=lambda folder: folder.name)
RECORD = (
    "nodes send or write something new: raise FORMAT in statemachine/base.py, unless no released "
    "version has it (then --again), and record it: python -m tests.conformance.versions"
)


def meaning(path: Path) -> Any:
    return json.loads(path.with_name(path.name + MEANING).read_text())


@each
@pytest.mark.parametrize("name", JOURNALS)
def test_the_journal_is_read(sample: Path, name: str) -> None:
    records, torn = read((sample / name).read_bytes())

    assert told(records) == meaning(sample / name)
    assert torn == 0


@each
def test_every_kind_of_message_is_read(sample: Path) -> None:
    for line in (sample / FRAMES).read_text().splitlines():
        row = json.loads(line)
        parser = FrameParser()
        assert told(parser.feed(bytes.fromhex(row["hex"]))) == [row["reads"]]
        assert parser.refused == {}


@each
def test_the_table_of_nodes_is_read(sample: Path) -> None:
    me, others = parse_nodes((sample / NODES).read_bytes())

    assert (me.id, me.ip) == (examples.ME, "10.0.0.1")
    assert [(peer.id[:1], peer.ip, bool(peer.flags)) for peer in others] == [
        (b"b", "10.0.0.2", True), (b"c", "", True),
    ]  # fmt: skip


@each
def test_the_trace_is_read_and_passed_on(sample: Path) -> None:
    lines = (sample / TRACE).read_bytes().splitlines(keepends=True)

    assert [line_of(row) for row in rows_of(lines)] == lines


@each
def test_no_number_has_another_meaning(sample: Path) -> None:
    today = numbers()
    for part, recorded in json.loads((sample / NUMBERS).read_text()).items():
        if isinstance(recorded, dict):
            assert recorded.items() <= today[part].items(), part
        elif isinstance(recorded, list):
            assert today[part][: len(recorded)] == recorded or part in ("records", "row"), part
            assert set(recorded) <= set(today[part]), part
        else:
            assert recorded & today[part] == recorded, part


# Nothing is sent or written without a sample.


def test_the_numbers_in_use_are_those_of_the_latest_sample() -> None:
    assert samples()[-1] == place(FORMAT), RECORD
    assert json.loads((place(FORMAT) / NUMBERS).read_text()) == numbers(), RECORD
    assert sum(numbers()["capabilities"].values()) == CAPABILITIES


def test_every_kind_of_message_has_a_sample_in_which_each_field_has_a_value() -> None:
    found: dict[type, set[str]] = {}
    whole = [example.message for example in examples.frames()]
    parts = [part for each in whole if isinstance(each, Batch) for part in each.messages]
    for message in [*whole, *parts, *(one for each in parts for one in singles(each))]:
        known = found.setdefault(type(message), set())
        for field in attrs.fields(type(message)):
            known |= {field.name} if getattr(message, field.name) != field.default else set()
    for kind in [*wire._WRITERS, Many]:
        assert kind in found, RECORD
        assert found[kind] == {field.name for field in attrs.fields(kind)}, (kind, RECORD)


@pytest.mark.parametrize("example", [examples.EXTENSIONS, examples.EXTENDED, examples.GOSSIP[0]])
def test_each_field_within_has_a_value_too(example: Any) -> None:
    without = [
        field.name
        for field in attrs.fields(type(example))
        if getattr(example, field.name) == field.default and field.name != "due"
    ]
    assert without == [], RECORD


def test_each_value_of_the_header_is_in_a_sample() -> None:
    full = next(examples.frames())
    assert all(getattr(full, each.name) != each.default for each in attrs.fields(Frame)), RECORD


def test_a_trace_has_a_row_with_all_fields() -> None:
    full = examples.rows()[1]
    assert all(getattr(full, each.name) != each.default for each in attrs.fields(type(full))), (
        RECORD
    )
