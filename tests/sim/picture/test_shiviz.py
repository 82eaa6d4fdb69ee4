import json
import re

import attrs

from disque_trio.sim.picture.shiviz import PARSER, export
from disque_trio.tracing.rows import Row
from tests.sim.picture import examples

Clock = dict[str, int]


def events(log: str) -> list[tuple[str, Clock, str]]:
    lines = log.splitlines()
    assert lines[:2] == [PARSER, ""]
    pattern = re.compile(PARSER.replace("(?<", "(?P<"))
    found = pattern.finditer("\n".join(lines[2:]))
    return [(each["host"], json.loads(each["clock"]), each["event"]) for each in found]


def without_clocks(rows: list[Row]) -> list[Row]:
    return [attrs.evolve(row, clock=()) for row in rows]


def test_every_row_of_a_lifeline_is_an_event() -> None:
    rows = examples.split_brain()

    assert len(events(export(rows))) == len([row for row in rows if row.node])


def test_each_host_counts_its_own_events_without_a_gap() -> None:
    counts: Clock = {}
    for host, clock, _ in events(export(examples.split_brain())):
        counts[host] = counts.get(host, 0) + 1
        assert clock[host] == counts[host]


def test_what_is_received_comes_after_what_was_sent() -> None:
    told = events(export(examples.calm()))
    sent = next(clock for _, clock, event in told if " send " in event and "repljob" in event)
    received = next(clock for _, clock, event in told if " recv " in event and "repljob" in event)

    assert received["n1"] >= sent["n1"]


def test_without_vector_clocks_the_messages_tell_the_order() -> None:
    for rows in (examples.calm(), without_clocks(examples.calm())):
        told = events(export(rows))
        host, clock, _ = next(each for each in told if " recv " in each[2] and "gotjob" in each[2])
        assert host == "n1"
        assert clock["n2"] == 3


def test_what_a_cut_kept_apart_is_concurrent() -> None:
    told = events(export(examples.split_brain()))
    acked = next(clock for host, clock, event in told if host == "n1" and " acked " in event)
    served = next(clock for host, clock, event in told if host == "n2" and " serve " in event)

    assert served.get("n1", 0) < acked["n1"]
    assert acked.get("n2", 0) < served["n2"]


def test_one_job_can_be_exported_alone() -> None:
    rows = examples.large(jobs=3)

    told = events(export(rows, job=examples.job_id(1)))

    assert told
    assert all(examples.job_id(1) in event or "add.invoke" in event for _, _, event in told)


def test_an_event_is_one_line() -> None:
    rows = [Row(0, "get.deliver", "n1", "J", client="c1", detail="body=a\nb {x}")]

    assert events(export(rows))[0][2] == "0.000000 get.deliver J c1 body=a b {x}"
