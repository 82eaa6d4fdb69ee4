"""Runs a scenario once: the app, its workers and the simulated cluster in one run of Trio."""

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

import anyio.to_thread
import attrs
import trio

from disque_trio.sim.engines.task_errors import ungrouped
from disque_trio.sim.engines.trio import virtual_time
from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import ClockPlan, Plan
from disque_trio.terminal.counting import counted
from disque_trio.testing.simulated.block_io import no_sockets
from disque_trio.testing.simulated.clock import ScenarioClock
from disque_trio.testing.simulated.cluster import STORY, Cluster
from disque_trio.testing.simulated.processes import WorkerProcess, world_of
from disque_trio.testing.simulated.states import State, Watching
from disque_trio.testing.simulated.step import Steps
from disque_trio.worker.app import App
from disque_trio.worker.runtime import for_task

Scenario = Callable[[Cluster], Awaitable[object]]

LIMIT_S: Final = 24 * 3600.0
_SHOWN: Final = 40
"""Lines of what has happened that an error shows."""


class ScenarioTooLongError(AssertionError):
    """The scenario does not come to an end."""


def nothing(_: WorkerProcess, __: Steps[Any], ___: int, ____: str) -> None:
    """Before a step."""


@attrs.frozen(kw_only=True)
class Setting:
    """How the cluster of a scenario is made."""

    nodes: int = 3
    workers: int = 2
    concurrency: int = 10
    """Handlers of a worker at a time."""
    drift_ppm: int = 0
    """How much faster or slower than true time clocks of nodes run: drawn for each, up to this."""
    config: Sequence[tuple[str, str]] = (("cluster-node-timeout", "2000"),)
    limit: float = LIMIT_S
    """Virtual seconds that the scenario may take."""

    def plan(self, seed: int) -> Plan:
        """The cluster, for the simulator."""
        rng = stream(seed, "drift")
        drift = self.drift_ppm
        return Plan(
            scenario="story",
            seed=seed,
            nodes=self.nodes,
            config=tuple(self.config),
            clocks=tuple(
                ClockPlan(drift_ppm=rng.randint(-drift, drift)) for _ in range(self.nodes)
            ),
            vector_clocks=False,
            codec_every=1 << 20,
        )


@attrs.define(eq=False)
class Recording:
    """What has happened in a scenario."""

    cluster: Cluster | None = None
    effects: list[str] = attrs.Factory(list)

    def effect(self, text: str) -> None:
        """A method of the user's state was called."""
        self.effects.append(text)
        if self.cluster is not None:
            self.cluster.note("", f"effect  {text}")

    def lines(self) -> str:
        """The end of what has happened."""
        log = [] if self.cluster is None else self.cluster.log
        shown = [f"  {line}" for line in log[-_SHOWN:]]
        if len(log) > _SHOWN:
            shown.insert(0, f"  … {counted(len(log) - _SHOWN, 'line')} before")
        return "\n".join(shown)


def run(
    scenario: Scenario,
    app: App[Any],
    setting: Setting,
    seed: int,
    *,
    state: State,
    recording: Recording,
    before: Callable[..., BaseException | None] = nothing,
) -> None:
    """Run it once."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            cluster = recording.cluster = Cluster(
                setting.plan(seed),
                app,
                concurrency=setting.concurrency,
                before=before,
                nursery=nursery,
            )
            clock.engine = cluster.engine
            clock.limiters = (
                trio.to_thread.current_default_thread_limiter(),
                anyio.to_thread.current_default_thread_limiter(),
            )
            with _finishing(cluster, clock), no_sockets():
                for number in range(1, setting.workers + 1):
                    await cluster.start_worker(f"w{number}")
                await _run(scenario, app, cluster, setting.limit)
            nursery.cancel_scope.cancel()

    clock = ScenarioClock()
    with ungrouped(), Watching(state, recording.effect):
        virtual_time.run(f"{seed}/story", main, clock)


@contextlib.contextmanager
def _finishing(cluster: Cluster, clock: ScenarioClock) -> Iterator[None]:
    try:
        yield
    finally:
        cluster.finish()
        clock.engine = None  # so that tasks that do not end are found, and not waited for


async def _run(scenario: Scenario, app: App[Any], cluster: Cluster, limit: float) -> None:
    world = world_of(cluster.addresses, cluster.story, stream(cluster.plan.seed, STORY))
    with for_task(world):
        async with app:
            with trio.move_on_after(limit) as scope:
                await scenario(cluster)
            if scope.cancelled_caught:
                raise ScenarioTooLongError(
                    f"the scenario has not ended after {limit:g} virtual seconds"
                )
            cluster.check()
