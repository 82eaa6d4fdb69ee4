"""What is compiled, and what is left as it is."""

import ast

import pytest

from compiling.modules import COLD, PACKAGE, compiled


def test_every_module_that_is_named_is_there() -> None:
    assert [each for each in (*COLD, *compiled()) if not (PACKAGE / f"{each}.py").is_file()] == []


def test_what_hardly_ever_runs_is_not_compiled() -> None:
    assert "statemachine/machine" in compiled()
    assert COLD.isdisjoint(compiled())


@pytest.mark.parametrize("module", compiled())
def test_no_generator_is_defined_in_a_function(module: str) -> None:
    """Compiled by mypyc, one cannot be closed once it has ended: that raises AttributeError."""
    tree = ast.parse((PACKAGE / f"{module}.py").read_text("utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inner = [each for one in functions for each in ast.walk(one) if each is not one]

    assert [
        each.name for each in inner if isinstance(each, ast.FunctionDef) and _yields(each)
    ] == []


def _yields(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
