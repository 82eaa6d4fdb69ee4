"""Which members of a flow may be added, by what tokens say."""

from collections.abc import Sequence

import pytest

from disque_trio.worker.flows.graph import Graph
from disque_trio.worker.tokens import End, Member, State, Token

AFTER: Sequence[Sequence[int]] = ([], [0], [0], [1, 2], [3])


def graph(*tokens: Token) -> Graph:
    found = Graph(5, after=AFTER)
    for token in tokens:
        found.take(token)
    return found


def ended(place: int, state: State) -> Token:
    end: End = (state, "why")
    return Token(ended=[(place, end)])


@pytest.mark.parametrize(
    ("tokens", "ready"),
    [
        ([], [0]),
        ([Token(jobs=[(0, Member("D-0"))])], []),
        ([Token(done=[0])], [1, 2]),
        ([Token(done=[0]), Token(jobs=[(1, Member("D-1"))])], [2]),
        ([Token(done=[0, 1])], [2]),
        ([Token(done=[0, 1, 2])], [3]),
        ([Token(done=[0, 1]), ended(2, "dead")], []),
        ([Token(done=[0, 1]), ended(2, "dead"), Token(done=[2])], [3]),
        ([Token(done=[0, 1]), ended(2, "cancelled")], []),
        ([Token(done=[0, 1, 2, 3, 4])], []),
    ],
)
def test_a_member_is_ready_when_all_before_it_are_done(
    tokens: list[Token], ready: list[int]
) -> None:
    assert graph(*tokens).ready() == ready


@pytest.mark.parametrize("state", ["cancelled", "merged", "expired", "refused", "late"])
def test_what_follows_a_lost_member_is_skipped(state: State) -> None:
    found = graph(Token(done=[0, 1]), ended(2, state))
    assert found.is_complete
    assert [end[0] for end in found.final().values()] == [
        "done", "done", state, "cancelled", "cancelled",
    ]  # fmt: skip


def test_a_dead_member_is_waited_for() -> None:
    found = graph(Token(done=[0, 1], jobs=[(2, Member("D-2"))]), ended(2, "dead"))
    assert (found.is_complete, found.running()) == (False, [])
    assert list(found.pending()) == [2]


def test_a_cancelled_flow_waits_for_nothing() -> None:
    assert graph(Token(is_cancelled=True), Token(done=[0])).is_complete
