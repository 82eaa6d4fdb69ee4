"""Histories are lines that any client may write; a wrong one is named with what to do."""

import json
from typing import Any

import pytest

from disque_trio.sim.histories.reading import Reader
from disque_trio.sim.histories.records import History, HistoryError, Limits
from tests.sim.histories.said import job

BEGIN = {"client": "c", "call": 1, "at": 5.0, "request": ["ADDJOB", "q", "b", 0]}
END = {"client": "c", "call": 1, "at": 6.0, "reply": job(1)}


def read(*lines: Any) -> History:
    reader = Reader()
    reader.feed(
        [line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines],
        "h.jsonl",
    )
    return reader.history(Limits())


def test_a_call_is_a_line_for_its_begin_and_one_for_its_end() -> None:
    (call,) = read(BEGIN, END).calls

    assert (call.begin, call.end, call.reply) == (5.0, 6.0, job(1))
    assert call.request == ["ADDJOB", "q", "b", "0"]
    assert call.line == "h.jsonl:1"


def test_one_line_may_have_both() -> None:
    (call,) = read({**BEGIN, "error": "ERR no"}).calls

    assert (call.end, call.error) == (5.0, "ERR no")


def test_an_unfinished_last_line_is_skipped() -> None:
    assert len(read(BEGIN, b'{"client":"c","ca').calls) == 1


def test_faults_are_known_if_every_file_says_so() -> None:
    known, unknown = {"history": 1, "faults": "known"}, {"history": 1}

    assert read(known, BEGIN).has_all_faults
    assert not read(known, unknown).has_all_faults
    assert not read(BEGIN).has_all_faults


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([b"no\n"], "h.jsonl:1: no JSON (Expecting value"),
        ([[1]], "h.jsonl:1: the line cannot be [1]: write one JSON object a line"),
        ([{"at": 1}], "h.jsonl:1: a line has 'call' (and 'client', 'at'), 'fault' or 'history'"),
        ([{**BEGIN, "at": "soon"}], "'at' cannot be 'soon': write a time in seconds"),
        ([{**BEGIN, "call": "1"}], "'call' cannot be '1': write a whole number"),
        ([{**BEGIN, "client": ""}], "'client' cannot be '': write a text"),
        ([{"call": 1, "at": 1, "request": ["PING"]}], "'client' is missing: write a text"),
        ([{**BEGIN, "request": "ADDJOB"}], "'request' cannot be 'ADDJOB': write the words"),
        ([{**BEGIN, "extra": 1}], "a field cannot be 'extra': the fields of such a line are"),
        ([BEGIN, BEGIN], "h.jsonl:2: 'call' cannot be 1: this client has this call at h.jsonl:1"),
        ([END], "'call' cannot be 1: no line before it has the request of this call"),
        ([BEGIN, END, END], "'reply' cannot be 'D-"),
        ([BEGIN, {**END, "error": "x"}], "'error' cannot be 'x': a call ends once"),
        ([BEGIN, {**END, "at": 4}], "'at' cannot be 4.0: the call began at 5.000000"),
        ([BEGIN, {**END, "reply": "OK"}], "'reply' cannot be 'OK': ADDJOB returns the id of a job"),
        ([BEGIN, {"client": "c", "call": 1, "at": 6}], "write 'reply', 'error' or 'lost'"),
        ([{**BEGIN, "request": ["GETJOB", "FROM", "q"], "reply": [1]}], "GETJOB returns null, or"),
        ([{**BEGIN, "request": ["WAITJOB", job(1)], "reply": [1]}], "WAITJOB returns a text or"),
        ([{"history": 2}], "'history' cannot be 2: this version reads format 1"),
        ([{"history": 1, "faults": "no"}], "'faults' cannot be 'no': write 'known' or 'unknown'"),
        ([{"fault": "cut", "at": 5, "until": 4}], "'until' cannot be 4.0: the fault began at 5"),
        ([{"fault": "kill", "at": 5, "memory": "?"}], "'memory' cannot be '?': write 'lost' if"),
    ],
)
def test_a_wrong_line_is_named_with_its_field_its_value_and_what_to_do(
    lines: list[Any], said: str
) -> None:
    with pytest.raises(HistoryError) as caught:
        read(*lines)

    assert said in str(caught.value)
    assert str(caught.value).startswith("h.jsonl:")
