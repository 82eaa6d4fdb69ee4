"""The shared state of a simulated app: the plan, its jobs by number, and their rows."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import attrs
import trio

from disque_trio.client.address import Cluster
from disque_trio.sim.engines.heap.run import Run
from disque_trio.sim.scenarios.apps import AppJob, AppsPlan, AppTask, HandlerAction
from disque_trio.testing.simulated.clock import ScenarioEngine

MOST_RUNS: Final = 60
"""After this many runs of a job its handlers return, so that every run of the plan ends."""
_RETURN: Final = HandlerAction()


@attrs.define(eq=False)
class RunState:
    """One run."""

    plan: AppsPlan
    run: Run
    engine: ScenarioEngine
    addresses: Cluster
    nursery: trio.Nursery
    is_over: bool = False
    """Has the run ended?"""
    is_calm: bool = False
    """Has the chaos ended? Then handlers no longer harm their processes."""
    waits: int = 0
    """The number of results that are awaited now."""
    jobs: dict[int, AppJob] = attrs.Factory(dict)
    tasks: dict[str, AppTask] = attrs.Factory(dict)
    begins: Counter[int] = attrs.Factory(Counter)
    runs: int = 0
    """The number of runs that have started, counting at most `MOST_RUNS` for each job."""

    def __attrs_post_init__(self) -> None:
        self.tasks = {each.name: each for each in self.plan.tasks}
        self.jobs = {job.number: job for call in self.plan.calls for job in call.jobs}

    def row(
        self,
        kind: str,
        client: str,
        *,
        job: str = "",
        queue: str = "",
        cause: str = "",
        ref: int = 0,
        **detail: Any,
    ) -> None:
        """Write a row (`app.KIND`); `detail` becomes `name=value`."""
        if self.is_over:
            return
        self.engine.sync()
        text = " ".join(f"{name}={value}" for name, value in detail.items() if value != "")
        fields = (
            self.engine.now, f"app.{kind}", "", job, queue, client, "", cause, text, ref, 0, 0, (),
        )  # fmt: skip
        self.run.recorder.add(fields)

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Call `act` after this time."""

        async def wait() -> None:
            await trio.sleep(seconds)
            act()

        self.nursery.start_soon(wait)

    def next_action(self, number: int) -> HandlerAction:
        """The action of the next run of a job."""
        self.begins[number] += 1
        self.runs += self.begins[number] <= MOST_RUNS
        job = self.jobs.get(number)
        place = self.begins[number] - 1
        if job is None or place >= min(len(job.actions), MOST_RUNS):
            return job.actions[-1] if job and job.actions and place < MOST_RUNS else _RETURN
        found = job.actions[place]
        if self.is_calm and found.kind in ("kill", "block"):
            return attrs.evolve(found, kind="error")
        return found
