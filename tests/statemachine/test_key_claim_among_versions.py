"""UNIQUE beside nodes of an earlier version, which ask for keys in another way, or in none."""

from collections.abc import Iterable

import pytest

from disque_trio.statemachine.base import (
    BURIES,
    CAPABILITIES,
    CLAIMS,
    KEEPS_ALL,
    PFAIL,
    POSTPONES,
    QUEUED,
    SNOOZES,
    Failure,
    Status,
)
from disque_trio.statemachine.extensions import FOLLOWS, Extensions
from disque_trio.statemachine.key_search import ASK_EVERY
from disque_trio.statemachine.nodetable import mark, unmark
from tests.rig import N2, N3, Rig
from tests.statemachine.keying import KEY, ask, claims, keyed_copy, keyed_rig, outwait, say_all

FIRST_WITH_KEYS = CAPABILITIES & ~(BURIES | POSTPONES | SNOOZES)
"""November 22, 2026, 17:00."""
BEFORE_KEYS = FIRST_WITH_KEYS & ~CLAIMS
MUTE = pytest.mark.parametrize(
    "capabilities", [FIRST_WITH_KEYS, BEFORE_KEYS], ids=["other", "none"]
)
TICK = 10


def announce(rig: Rig, capabilities: int) -> None:
    rig.node.cluster.nodes[N3].capabilities = capabilities


def refused(replies: Iterable[object]) -> None:
    for reply in replies:
        assert isinstance(reply, Failure)
        assert reply.text.startswith(b"NOREPL It cannot be known who has the key")
        assert reply.text.endswith(b"upgrade them: 127.0.0.3:7711")


@MUTE
def test_it_is_refused_at_once(capabilities: int) -> None:
    rig = keyed_rig()
    announce(rig, capabilities)

    client = ask(rig, timeout=2000)

    refused([rig.reply(client)])
    assert not claims(rig)
    assert not rig.node.keys.claims
    assert not rig.node.adding


@MUTE
def test_those_that_wait_are_refused_when_such_a_node_comes(capabilities: int) -> None:
    rig = keyed_rig()
    first, second = ask(rig), ask(rig, timeout=60_000)
    announce(rig, capabilities)

    rig.advance(ASK_EVERY + TICK)

    refused([rig.reply(first), rig.reply(second)])
    assert not rig.node.keys.claims
    assert not rig.node.keys.asking
    assert not rig.node.adding


@MUTE
@pytest.mark.parametrize("command", ["SHOW", "CANCEL"])
def test_so_are_questions_about_a_key(capabilities: int, command: str) -> None:
    rig = keyed_rig()
    announce(rig, capabilities)

    refused([rig.ask(command, "KEY", "q", "k")])
    assert not claims(rig)


@pytest.mark.parametrize(
    ("capabilities", "goes"),
    [(CAPABILITIES, True), (FIRST_WITH_KEYS, False), (BEFORE_KEYS, False)],
)
def test_no_job_goes_ahead_of_an_earlier_one_that_such_a_node_may_have(
    capabilities: int, *, goes: bool
) -> None:
    rig = keyed_rig()
    copy = keyed_copy()
    copy.extensions = Extensions(key=KEY, follows=FOLLOWS)
    job = rig.hold(copy)
    announce(rig, capabilities)

    outwait(rig, 120)

    assert (job.state == QUEUED) is goes


def test_it_works_again_once_the_node_has_gone_or_has_been_upgraded() -> None:
    rig = keyed_rig()
    announce(rig, FIRST_WITH_KEYS)
    mark(rig.node, rig.node.cluster.nodes[N3], PFAIL)
    gone = ask(rig)
    say_all(rig)
    assert isinstance(rig.reply(gone), Status)

    unmark(rig.node, rig.node.cluster.nodes[N3], PFAIL)
    announce(rig, CAPABILITIES & ~SNOOZES)
    ask(rig, timeout=100)
    assert {to for to, _ in claims(rig)} == {N2, N3}


@pytest.mark.parametrize(
    "capabilities", [0, CAPABILITIES & ~KEEPS_ALL], ids=["original", "no place"]
)
def test_nodes_that_keep_no_such_jobs_are_no_hindrance(capabilities: int) -> None:
    rig = keyed_rig()
    announce(rig, capabilities)
    client = ask(rig)

    say_all(rig)

    assert isinstance(rig.reply(client), Status)
