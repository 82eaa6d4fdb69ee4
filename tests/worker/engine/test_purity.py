"""The engine is as pure as the state machine."""

from pathlib import Path

import pytest

from tests import test_tidy
from tests.trees import PACKAGE, modules, shown

every_module = pytest.mark.parametrize("path", modules(PACKAGE / "worker" / "engine"), ids=shown)


@every_module
def test_it_does_not_know_the_world(path: Path) -> None:
    test_tidy.test_the_state_machine_does_not_know_the_world(path)


@every_module
def test_no_set_decides_an_order(path: Path) -> None:
    test_tidy.test_no_set_decides_an_order(path)
