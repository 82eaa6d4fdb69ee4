"""Which seeds come to which statements: a mutant is tried only in seeds that come to its place."""

import ast
import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.sim.mutants.operators import candidates, sources
from tests.sim.mutants.swapping import swapped

_NAME = "__reached__"

Place = tuple[str, int]
"""A file, and the line of a statement."""


def places() -> list[Place]:
    """Where mutants may be."""
    found = [(each.file, each.statement) for path in sources() for each in candidates(path)]
    return list(dict.fromkeys(found))


@contextmanager
def watched(watched_places: list[Place], root: Path) -> Iterator[bytearray]:
    """Has a 1 for each place that is come to. Whoever reads it may clear it."""
    hits = bytearray(len(watched_places))
    numbers = {place: number for number, place in enumerate(watched_places)}
    files = dict.fromkeys(file for file, _ in watched_places)
    vars(builtins)[_NAME] = hits
    with swapped({root / file: _watching(root / file, file, numbers) for file in files}):
        yield hits


def _watching(path: Path, file: str, numbers: dict[Place, int]) -> ast.Module:
    tree: ast.Module = _Insert(file, numbers).visit(ast.parse(path.read_text("utf-8")))
    return tree


class _Insert(ast.NodeTransformer):
    """Sets the byte of a statement before it."""

    def __init__(self, file: str, numbers: dict[Place, int]) -> None:
        self._file = file
        self._numbers = numbers

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                setattr(node, field, [each for one in body for each in self._with_mark(one)])
        return node

    def _with_mark(self, statement: ast.stmt) -> list[ast.stmt]:
        number = self._numbers.get((self._file, statement.lineno))
        if number is None:
            return [statement]
        (mark,) = ast.parse(f"{_NAME}[{number}] = 1").body
        for each in ast.walk(mark):
            ast.copy_location(each, statement)
        return [mark, statement]
