"""H12: WAITJOB reports an end that the job may have had, and a result that was given."""

from typing import Any

import pytest

from tests.sim.histories.said import Said, job

ONE = job(1)
RESULT = ("RESULT", "done", "KEEP", 60)


def waited(said: Said, reply: Any, *, begin: float = 5, node: str = "n1") -> list[str]:
    """The properties that are broken once WAITJOB has this reply."""
    options = ["WITHRESULT"] if isinstance(reply, list) else []
    said.call(begin, begin + 1, "WAITJOB", ONE, *options, reply=reply)
    said.lines[-2]["node"] = node
    return said.broken()


def added(*options: object) -> Said:
    said = Said()
    said.add(0, ONE, *options)
    return said


def test_a_job_that_nobody_acknowledged_is_not_acknowledged() -> None:
    said = added()
    assert waited(said, None) == []
    assert waited(said, "dead") == []

    assert waited(said, "acked") == ["H12"]


@pytest.mark.parametrize("command", ["ACKJOB", "FASTACK", "PURGE", "CANCEL"])
def test_what_may_have_acknowledged_it_explains_the_end(command: str) -> None:
    said = added()
    said.call(1, 2, command, "q" if command in ("PURGE", "CANCEL") else ONE, lost="killed")

    assert waited(said, "acked") == []


def test_an_acknowledgement_after_the_reply_explains_nothing() -> None:
    said = added()
    said.ack(7, ONE)

    assert waited(said, "acked") == ["H12"]


def test_a_job_that_was_replaced_may_have_ended() -> None:
    said = added("UNIQUE", "k")
    said.add(1, job(2), "UNIQUE", "k", "IFEXISTS", "replace")

    assert waited(said, "acked") == []


def test_a_job_expires_at_the_end_of_its_ttl() -> None:
    assert waited(added("TTL", 7), "expired") == []
    assert waited(added("TTL", 8), "expired") == ["H12"]

    said = added("TTL", 8)
    said.lines.append({"fault": "wall.freeze", "at": 1})
    assert waited(said, "expired") == []


def test_a_result_is_one_that_was_given() -> None:
    said = added()
    said.call(1, 2, "ACKJOB", ONE, *RESULT, reply=1)
    assert waited(said, ["acked", "done"]) == []

    assert waited(said, ["acked", "else"]) == ["H12"]


def test_an_acknowledgement_without_an_outcome_may_have_given_its_result() -> None:
    said = added()
    said.call(1, 2, "ACKJOB", ONE, *RESULT)

    assert waited(said, ["acked", "done"]) == []


@pytest.mark.parametrize(
    ("counted", "node", "begin", "broken"),
    [
        (1, "n1", 5, ["H12"]),
        (0, "n1", 5, []),  # it counted an earlier one
        (1, "n2", 5, []),  # it may know the end only
        (1, "n1", 1.5, []),  # asked before the acknowledgement was answered
        (1, "n1", 62, []),  # its KEEP is over
    ],
)
def test_the_node_that_has_counted_it_returns_its_result(
    counted: int, node: str, begin: float, broken: list[str]
) -> None:
    said = added()
    said.call(1, 2, "ACKJOB", ONE, *RESULT, reply=counted)

    assert waited(said, ["acked", None], begin=begin, node=node) == broken


@pytest.mark.parametrize(("memory", "broken"), [("lost", []), ("kept", ["H12"])])
def test_a_result_is_lost_with_the_memory_of_its_node(memory: str, broken: list[str]) -> None:
    said = added()
    said.call(1, 2, "ACKJOB", ONE, *RESULT, reply=1)
    said.fault(3, 4, memory=memory)

    assert waited(said, ["acked", None]) == broken


def test_a_node_that_knows_no_such_job_keeps_no_result() -> None:
    said = added()
    said.call(1, 2, "ACKJOB", ONE, *RESULT, reply=1)
    said.call(5, 6, "WAITJOB", ONE, "WITHRESULT", error="NOJOB unknown")

    assert said.broken() == ["H12"]


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_node_that_was_asked_to_delete_the_job_keeps_no_result(node: str) -> None:
    said = added()
    said.call(1, 2, "ACKJOB", ONE, *RESULT, reply=1)
    said.call(3, 4, "DELJOB", ONE, reply=0)
    said.lines[-2]["node"] = node

    assert bool(waited(said, ["acked", None])) == (node == "n2")


def test_other_clients_may_have_ended_it() -> None:
    said = added()
    waited(said, "acked")

    assert said.verdict(has_all_clients=False).is_ok
