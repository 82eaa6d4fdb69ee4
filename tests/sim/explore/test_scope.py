"""Scopes are read from small files; what cannot be explored is refused."""

import pytest

from disque_trio.sim.explore import scope
from disque_trio.sim.explore.scope import ScopeError

ONE = 'about = "x"\nnodes = 2\n[[clients]]\nnode = "a"\ndoes = ["ADDJOB q one 0 RETRY 1"]\n'


@pytest.mark.parametrize("name", scope.shipped())
def test_a_shipped_scope_says_what_it_is_about(name: str) -> None:
    assert scope.load(name).about.endswith(".")


def test_jobs_differ_in_their_ids_and_keep_their_order() -> None:
    jobs = scope.load("moving").jobs

    assert [job.name for job in jobs] == ["one", "two"]
    assert jobs[0].id_at(b"a" * 40) != jobs[1].id_at(b"a" * 40)
    assert [job.bits & 0xFF for job in jobs] == [0, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ONE.replace("nodes = 2", "nodes = 9"), "1 to 4 nodes"),
        (ONE.replace('"a"', '"z"'), "'z' is no node"),
        (ONE.replace('"a"', '"c"'), "a node beyond the 2"),
        (ONE.replace(" RETRY 1", ""), "give RETRY"),
        (ONE + '[faults]\nflood = ["a"]\n', "'flood' is no fault"),
        (ONE.replace("nodes", 'exchangeable = ["a"]\nnodes'), "cannot be exchanged"),
        (ONE + ONE[ONE.index("[[") :], "two jobs have the same body"),
        (ONE.replace("nodes = 2", "nodes = 2\nwide = 3"), "wide"),
        ("about = ", "x: "),
    ],
)
def test_a_scope_that_cannot_be_explored_is_refused(text: str, said: str) -> None:
    with pytest.raises(ScopeError, match=said):
        scope.parse(text, "x")


def test_an_unknown_scope_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ScopeError, match=r"no scope 'nowhere' .*: collection, "):
        scope.load("nowhere")
