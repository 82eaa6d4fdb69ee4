"""Which form of the package the tests run; `make test-compiled` asks for the other one."""

import os

from disque_trio.statemachine import base, machine
from disque_trio.statemachine.form import FORM


def test_the_form_is_the_one_that_was_asked_for() -> None:
    assert os.environ.get("DISQUE_FORM", "pure") == FORM


def test_all_of_the_machine_has_that_form() -> None:
    for module in (base, machine):
        assert ((module.__file__ or "").endswith(".py")) == (FORM == "pure")
