"""Wrong arguments of the programs that the Makefile runs."""

from collections.abc import Callable

import pytest

from tests.explain import sweep
from tests.sim.histories import __main__ as histories
from tests.spec import __main__ as spec
from tests.spec import validating, validating_keys

WRONG: list[tuple[Callable[[list[str]], int], str, str]] = [
    (spec.main, "nope", "'nope' is no model; the models are Job-adding, "),
    (validating.main, "x", "'x' is not a range of seeds"),
    (validating.main, "0:1 nofile.toml", "cannot read nofile.toml: "),
    (validating_keys.main, "5:2", "'5:2' is not a range of seeds"),
    (sweep.main, "0:abc", "'0:abc' is not a range of seeds"),
    (sweep.main, "ci", "'ci' is not a range of seeds"),
    (histories.main, "--seeds -3", "'-3' is not "),
    (histories.main, "nofile.toml", "cannot read nofile.toml: "),
]


@pytest.mark.parametrize(("main", "arguments", "error"), WRONG)
def test_a_wrong_argument_is_named(
    main: Callable[[list[str]], int], arguments: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())

    assert error in capsys.readouterr().err
