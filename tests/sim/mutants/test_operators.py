"""Operators change what may matter, one place at a time; which mutants are drawn is decided by
their names."""

import ast
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import attrs
import pytest

from tests.sim.mutants import operators
from tests.sim.mutants.mutant import PACKAGE
from tests.sim.mutants.operators import candidates, draw, sources
from tests.sim.mutants.swapping import ElsewhereError, swapped

ACKS: Final = PACKAGE / "statemachine" / "acks.py"


def changed(body: str, names: dict[str, Any] | None = None) -> set[tuple[str, str]]:
    """What operators make of the lines of a function: the operator, and the changed line."""
    source = "def f(node, a, b):\n" + "".join(f"    {line}\n" for line in dedent(body).splitlines())
    walk = operators._Walk(source, "f.py", names or {})
    walk.visit(ast.parse(source))
    found = set()
    for each in walk.found:
        text = source[: each.begin] + each.text + source[each.end :]
        ast.parse(text)
        found.add((each.operator, text.splitlines()[each.line - 1].strip()))
    return found


def test_conditions_are_negated() -> None:
    assert changed("x = a if b else not a") == {("negate", "x = a if not (b) else not a")}
    assert changed("while not a:\n    g = b") == {("negate", "while (a):")}
    assert changed("x = [y for y in a if y]") == {("negate", "x = [y for y in a if not (y)]")}
    assert changed("if a and b:\n    x = a or node") == {
        ("negate", "if not (a) and b:"),
        ("negate", "if a and not (b):"),
    }


def test_statements_are_dropped_that_nothing_else_needs() -> None:
    assert changed("g(a)\nx = a\nnode.x = a\nx += b\nreturn x") == {("drop", "pass")}


def test_bounds_are_off_by_one_but_not_flags_and_large_numbers() -> None:
    assert changed("x = a < 7") == {("bound", "x = a <= 7"), ("bound", "x = a < 8")}
    assert changed("x = a[1:]") == {("bound", "x = a[2:]")}
    assert changed("x = a & 8, b * 1000, True") == set()


def test_arguments_of_the_same_type_are_swapped() -> None:
    def of_one_type(one: int, other: int, third: str) -> None: ...

    names: dict[str, Any] = {"g": of_one_type}

    assert changed("x = g(a, b, node)", names) == {("swap", "x = g(b, a, node)")}


def test_fields_that_have_a_default_are_omitted() -> None:
    def with_default(one: int, *, other: int = 0, third: int) -> None: ...

    names: dict[str, Any] = {"g": with_default}

    assert changed("x = g(a, other=b, third=a)", names) == {("field", "x = g(a, third=a)")}
    assert changed("x = attrs.evolve(a, body=b)", {"attrs": attrs}) == {
        ("field", "x = attrs.evolve(a)")
    }


def test_what_cannot_matter_is_left_alone() -> None:
    assert changed('assert a < 1\ntrace.note(node, a)\nraise X(f"{a < 1}")') == set()
    assert changed("if a:\n    trace.note(node)") == set()
    assert not [path for path in sources() if path.name in ("wording.py", "invariants.py")]


def test_a_mutant_is_a_diff_of_one_place() -> None:
    drawn = draw(1, 3, [ACKS])[0]

    lines = [line for line in drawn.diff().splitlines()[2:] if line[0] in "+-"]

    assert {line[0] for line in lines} == {"+", "-"}
    assert drawn.name.startswith("statemachine/acks:")


def test_the_seed_decides_and_more_are_the_same_and_others() -> None:
    assert draw(5, 1, [ACKS]) == draw(9, 1, [ACKS])[:5] != draw(5, 2, [ACKS])


def test_a_line_is_changed_once() -> None:
    drawn = draw(1000, 0, [ACKS])

    assert len({each.line for each in drawn}) == len(drawn) < len(candidates(ACKS))


@pytest.mark.slow
def test_every_mutant_of_a_file_compiles_and_takes_the_place_of_its_function() -> None:
    for each in candidates(ACKS)[::20]:
        with swapped({each.path: each.source()}):
            pass


def test_the_intact_functions_come_back() -> None:
    from disque_trio.statemachine import acks  # noqa: PLC0415

    before = acks.fast_ack.__code__
    source = ACKS.read_text("utf-8").replace("    return True\n", "    return False\n")

    with swapped({ACKS: source}):
        assert acks.fast_ack.__code__ != before

    assert acks.fast_ack.__code__ == before


@pytest.mark.parametrize(
    ("old", "new"), [("MEETS_WITHIN: Final = 5", "MEETS_WITHIN: Final = 6"), ("def ack(", "def a(")]
)
def test_what_is_not_in_a_function_is_for_another_process(old: str, new: str) -> None:
    with pytest.raises(ElsewhereError), swapped({ACKS: ACKS.read_text("utf-8").replace(old, new)}):
        pass


def test_files_for_people_are_not_changed() -> None:
    assert all(Path(path).suffix == ".py" for path in sources())


def test_a_mutant_is_found_by_its_name() -> None:
    (each,) = draw(1, 0, [ACKS])

    assert operators.named(each.name) == each
    assert operators.named("statemachine/acks:gone:drop:1") is None
    assert operators.named("statemachine/gone:gone:drop:1") is None
