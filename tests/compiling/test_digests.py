"""Runs of both forms are compared; without a compiler both are the pure one here."""

from compiling.digests import compare, play
from compiling.layout import ROOT
from disque_trio.statemachine.form import FORM


def test_a_run_is_told_with_its_digest() -> None:
    form, run = play(1)

    scenario, seed, digest = run.split()
    assert (form, scenario, seed, len(digest)) == (FORM, "swarm", "0", 64)


def test_a_form_that_is_another_than_expected_is_told() -> None:
    assert compare(0, {"pure": ROOT, "compiled": ROOT}) == ["compiled: this is the pure form"]
