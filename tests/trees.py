"""The syntax trees of the package, for what tests promise of the code itself."""

import ast
import gc
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

Case = TypeVar("Case")

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
    """It is parsed once, and no collection of garbage traverses it: those of all files together
    would take four times as long."""
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        gc.freeze()
        gc.enable()


def of_each(
    cases: Sequence[Case], name: Callable[[Case], str]
) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """One test that checks each case, and names all that are wrong. As tests of their own, nine
    checks of a thousand files take longer to be collected than to be run."""

    def decorate(check: Callable[[Case], None]) -> Callable[[], None]:
        def test() -> None:
            assert cases, "there is nothing to check"
            wrong = {}
            for case in cases:
                try:
                    check(case)
                except AssertionError as error:
                    wrong[name(case)] = str(error)
            assert wrong == {}, wrong

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


ALL: Final = modules(PACKAGE)
every_file = of_each(ALL, shown)
