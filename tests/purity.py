"""What pure code must not do, of one file: to know the world, or to let chance decide."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

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
    fields = {each for file in path.parent.rglob("*.py") for each in _set_fields(file)}
    scopes = [tree(path), *_nodes(tree(path), ast.FunctionDef)]
    for scope in scopes:
        names = {each.arg for each in _nodes(scope, ast.arg) if _is_of_sets(each.annotation)}
        names |= set(_annotated(scope)) if scope is not scopes[0] else set()
        for value in _walked(scope):
            assert not _is_set(value, names, fields), f"line {value.lineno}"


_WALKS: Final = ("list", "tuple", "iter", "deque", "map", "zip", "dict.fromkeys")
Node = TypeVar("Node", bound=ast.AST)


def _nodes(scope: ast.AST, kind: type[Node]) -> list[Node]:
    return [node for node in ast.walk(scope) if isinstance(node, kind)]


def _walked(scope: ast.AST) -> Iterator[ast.expr]:
    """What loops and such calls walk through."""
    for node in ast.walk(scope):
        if isinstance(node, ast.For | ast.comprehension):
            yield node.iter
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in _WALKS:
            yield from node.args


def _annotated(scope: ast.AST) -> list[str]:
    """What is annotated as a set there."""
    found = [node for node in _nodes(scope, ast.AnnAssign) if _is_of_sets(node.annotation)]
    return [ast.unparse(node.target) for node in found]


def _is_of_sets(annotation: ast.expr | None) -> bool:
    return annotation is not None and bool(re.match(r"(frozen)?set\b", ast.unparse(annotation)))


@cache
def _set_fields(path: Path) -> frozenset[str]:
    bodies = [each.body for each in _nodes(tree(path), ast.ClassDef)]
    return frozenset(
        name for body in bodies for each in body if isinstance(each, ast.AnnAssign)
        for name in _annotated(each)
    )  # fmt: skip


def _is_set(value: ast.expr, names: set[str], fields: set[str]) -> bool:
    match value:
        case ast.Call(func=ast.Name(id=name)):
            return name in ("set", "frozenset")
        case ast.Name(id=name):
            return name in names
        case ast.Attribute(attr=name):
            return name in fields
    return isinstance(value, ast.Set | ast.SetComp)
