import pytest

from tests.spec.evaluating import Specification, explore
from tests.spec.parsing import listed_in, parse

COUNTER = r"""
---- MODULE Counter ----
EXTENDS Naturals
CONSTANTS Most, Node
VARIABLES at, seen
vars == <<at, seen>>
Init == /\ at = [n \in Node |-> 0]
        /\ seen = {}
(* One step.   *)
(* rows: up a, up b *)
Up(n) ==
    /\ at[n] < Most
    /\ \/ at' = [at EXCEPT ![n] = @ + 1]
       \/ at' = [at EXCEPT ![n] = Most]
    /\ seen' = seen \cup {n}
Reset == /\ \A n \in Node : at[n] = Most
         /\ at' = [n \in Node |-> 0] /\ UNCHANGED seen
Next == \/ \E n \in Node : Up(n)
        \/ Reset
Low == \A n \in Node : at[n] <= Most
NotAll == ~(seen = Node /\ \E n \in Node : at[n] = 2)
====
"""


def _counter() -> Specification:
    return Specification(parse(COUNTER), {"Most": 2, "Node": frozenset(["a", "b"])})


def test_a_search_finds_all_states() -> None:
    found = explore(_counter(), ["Low"])

    # {a, b} with 3 x 3 counts; before both are seen, the other is at 0.
    assert (found.states, found.broken) == (1 + 2 + 2 + 9, "")


def test_a_search_ends_at_the_first_state_that_breaks_an_invariant() -> None:
    found = explore(_counter(), ["Low", "NotAll"])

    assert found.broken == "NotAll"
    assert [len(state["seen"]) for state in found.path] == [0, 1, 2]


def test_lists_end_where_their_indentation_does() -> None:
    up = parse(COUNTER).definitions["Up"].body

    assert up[0] == "all"
    assert [each[0] for each in up[1]] == ["op", "any", "op"]


def test_comments_above_a_definition_are_its_own() -> None:
    definitions = parse(COUNTER).definitions

    assert listed_in(definitions["Up"].comment, "rows") == ["up a", "up b"]
    assert not definitions["Reset"].comment


@pytest.mark.parametrize("text", ["A == (1", "A == 1 + ("])
def test_an_error_names_the_line_at_which_something_is_missing(text: str) -> None:
    with pytest.raises(SyntaxError, match="line 4"):
        parse(f"---- MODULE M ----\n\n{text}\n====\n")
