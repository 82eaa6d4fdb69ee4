from pathlib import Path
from typing import Final

import attrs
import pytest

from disque_trio.cli.sim.execution import execute
from disque_trio.sim import reference
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.file import load
from disque_trio.sim.scenarios.scenario import JobSpec, families
from disque_trio.sim.scenarios.vocabulary import ORDERS
from tests.trees import HOME

ROOT: Final = HOME
SCENARIOS: Final = sorted(ROOT.glob("scenarios/*.toml"))
SWARMS: Final = sorted(ROOT.glob("scenarios/swarm*.toml"))
LONG: Final = (
    "soak-30-days", "soak-1-day", "soak-1-day-aof", "apps", "apps-calm", "apps-day", "flows",
    "flows-calm",
)  # fmt: skip
"""They take longer than a test may; of apps tests/testing/apps has some seeds."""
SWARM_SEEDS: Final = (1, 2, 3, 5, 6)
"""Of the one swarm, beside seed 0: less than a minute of a processor. `make sweep` plays more."""

everywhere = pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)


@everywhere
def test_a_scenario_is_called_like_its_file_and_says_what_it_is_for(path: Path) -> None:
    scenario = load(path)

    assert scenario.name == path.stem
    assert scenario.about
    assert scenario.expect.sometimes
    assert f"`{path.stem}`" in (path.parent / "README.md").read_text("utf-8")


@everywhere
def test_every_seed_of_a_scenario_has_its_plan(path: Path) -> None:
    scenario = load(path)

    plans = [expand(scenario, seed) for seed in range(8)]

    assert all(plan.apps or (plan.adds and plan.consumers) for plan in plans)
    assert len({(plan.adds, plan.apps) for plan in plans}) == 8


@pytest.mark.parametrize("path", SWARMS, ids=lambda path: path.stem)
def test_a_swarm_draws_each_of_its_families(path: Path) -> None:
    """One that is not in its list is always on, and masks others."""
    scenario = load(path)

    assert set(scenario.swarm.families or ()) == set(families(scenario))


def test_the_swarm_of_everything_uses_every_option_of_jobs() -> None:
    scenario = load(ROOT / "scenarios" / "everything.toml")

    for field in attrs.fields(JobSpec):
        default = getattr(JobSpec(), field.name)
        jobs = [producer.job for producer in scenario.producers]
        assert any(getattr(job, field.name) != default for job in jobs), field.name
    assert any(consumer.meta for consumer in scenario.consumers)
    assert any(consumer.tied for consumer in scenario.consumers)
    orders = {order for each in scenario.administrators for order, _ in each.orders}
    assert orders == set(ORDERS)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "path", [path for path in SCENARIOS if path.stem not in LONG], ids=lambda path: path.stem
)
def test_a_scenario_passes(path: Path) -> None:
    result = execute(expand(load(path), 0)).result

    assert result.findings == ()
    assert result.delivered


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", SWARM_SEEDS)
def test_the_swarm_of_everything_passes(seed: int) -> None:
    result = execute(expand(load(ROOT / "scenarios" / "everything.toml"), seed)).result

    assert result.findings == ()


def test_the_page_of_keys_is_up_to_date() -> None:
    assert (ROOT / "docs" / "scenario-keys.md").read_text("utf-8") == reference.page()
