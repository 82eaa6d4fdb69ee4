"""Some seeds of apps pass; a sweep takes many (docs/simulation.md, "Apps")."""

from typing import Final

import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from tests.trees import HOME

FOUND: Final = {
    16: "a result that was lost with its connection counted as on its way until its lease was over",
    62: "the same as 16",
    31: "whoever waited for a merged job was told late if a node had restarted long before",
    32: "the same as 31",
    59: "a process that stood still renewed leases that had ended, and jobs paid twice",
    197: "a process that stood still obeyed the order to stop, and renewed leases",
    198: "the clock of a node was fast, and a wait was taken for too short",
    200: "a worker was told that its job is lost, by a holder that held it back",
    253: "what a process that stood still said came too late, and two holders queued at once",
    289: "a producer added a job twice, and one was taken for the other's snooze",
    469: "holders that were cut off once counted the failures of a snoozed job differently",
    127: "a handler snoozed in the instant in which its time limit was over",
    470: "two workers held a job since a cut, and began it after the nodes had met again",
    474: "a job came again while its cancelled thread went on, and was called begun before it was",
}
"""Seeds of `apps` that have found something."""
FOUND_IN_CALM: Final = {
    168: "whoever waited was told after more than a second while results of other jobs came",
}


@pytest.mark.sample(9)
@pytest.mark.parametrize("seed", [*range(8), *FOUND_IN_CALM])
def test_an_app_with_nothing_wrong_but_its_handlers_keeps_every_promise(seed: int) -> None:
    result = execute(expand(load(HOME / "scenarios" / "apps-calm.toml"), seed)).result

    assert result.findings == ()
    assert result.delivered


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 7, 8, 9])
def test_an_app_keeps_its_promises_through_faults(seed: int) -> None:
    result = execute(expand(load(HOME / "scenarios" / "apps.toml"), seed)).result

    assert result.findings == ()
    assert result.delivered


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", FOUND)
def test_what_an_app_has_once_found_is_mended(seed: int) -> None:
    assert execute(expand(load(HOME / "scenarios" / "apps.toml"), seed)).result.findings == ()
