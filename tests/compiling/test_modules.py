"""What is compiled, and what is left as it is."""

from compiling.modules import COLD, PACKAGE, compiled


def test_every_module_that_is_named_is_there() -> None:
    assert [each for each in (*COLD, *compiled()) if not (PACKAGE / f"{each}.py").is_file()] == []


def test_what_hardly_ever_runs_is_not_compiled() -> None:
    assert "statemachine/machine" in compiled()
    assert COLD.isdisjoint(compiled())
