"""The engine is as pure as the state machine."""

from pathlib import Path

from tests.purity import check_no_order_of_sets, check_no_world
from tests.trees import PACKAGE, modules, of_each, shown

every_module = of_each(modules(PACKAGE / "worker" / "engine"), shown)


@every_module
def test_it_does_not_know_the_world(path: Path) -> None:
    check_no_world(path)


@every_module
def test_no_set_decides_an_order(path: Path) -> None:
    check_no_order_of_sets(path)
