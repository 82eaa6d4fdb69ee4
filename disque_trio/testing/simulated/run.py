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
"""The number of events that an error shows."""


class ScenarioTooLongError(AssertionError):
    """The scenario has exceeded its time limit."""


def nothing(_: WorkerProcess, __: Steps[Any], ___: int, ____: str) -> None:
    """Do nothing before a step."""


@attrs.frozen(kw_only=True)
class Setting:
    """The settings of a scenario's cluster."""

    nodes: int = 3
    workers: int = 2
    concurrency: int = 10
    """The number of handlers that a worker runs at the same time."""
    drift_ppm: int = 0
    """The maximum drift of the nodes' clocks from true time, in parts per million; the drift of
    each node is random."""
    config: Sequence[tuple[str, str]] = (("cluster-node-timeout", "2000"),)
    limit: float = LIMIT_S
    """The time limit of the scenario, in virtual seconds."""

    def plan(self, seed: int) -> Plan:
        """The plan of the cluster, for the simulator."""
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
    """The events and effects of a scenario."""

    cluster: Cluster | None = None
    effects: list[str] = attrs.Factory(list)

    def effect(self, text: str) -> None:
        """Record a call of a method of the user's state."""
        self.effects.append(text)
        if self.cluster is not None:
            self.cluster.note("", f"effect  {text}")

    def lines(self) -> str:
        """The last events, as text."""
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
    """Run the scenario once."""

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
        clock.engine = None  # detects tasks that do not end, instead of waiting for them


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
