"""What pure code must not do, of one file: to know the world, or to let chance decide."""

import ast
import re
from pathlib import Path
from typing import Final

from tests.trees import tree

WORLD: Final = {
    "asyncio", "datetime", "logging", "multiprocessing", "os", "pathlib", "secrets", "select",
    "selectors", "signal", "socket", "subprocess", "threading", "time", "trio", "uuid",
}  # fmt: skip
"""Modules of which it must not know."""


def check_no_world(path: Path) -> None:
    """It imports none of them, and calls nothing that differs from run to run."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = {alias.name.split(".")[0] for alias in node.names}
            assert not WORLD & names, f"line {node.lineno}"
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert node.module.split(".")[0] not in WORLD, f"line {node.lineno}"
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("id", "hash", "open", "print", "input"), called
            assert not re.fullmatch(r"random\.[a-z_]+", called), called


def check_no_order_of_sets(path: Path) -> None:
    """It walks through no set."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.For | ast.comprehension):
            assert not _is_set(node.iter), f"line {node.iter.lineno}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("list", "tuple", "iter"):
            assert not any(_is_set(argument) for argument in node.args), f"line {node.lineno}"


def _is_set(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func) in ("set", "frozenset")
    return isinstance(value, ast.Set | ast.SetComp)
