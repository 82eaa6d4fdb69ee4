"""The syntax trees of the package, for what tests promise of the code itself."""

import ast
from functools import cache
from pathlib import Path
from typing import Final

import pytest

HOME: Final = Path(__file__).parents[1]
PACKAGE: Final = HOME / "disque_trio"
STATEMACHINE: Final = PACKAGE / "statemachine"


def modules(root: Path) -> list[Path]:
    """All below a folder."""
    return sorted(root.rglob("*.py"))


def shown(path: Path) -> str:
    """Its name in a list of tests."""
    return path.relative_to(PACKAGE.parent).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """It is parsed once."""
    return ast.parse(path.read_text())


ALL: Final = modules(PACKAGE)
every_file = pytest.mark.parametrize("path", ALL, ids=shown)
