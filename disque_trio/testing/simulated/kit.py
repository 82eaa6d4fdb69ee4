"""`Sim`, the value of the fixture `disque_sim`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from disque_trio.testing.simulated.run import Recording, Scenario, Setting, run
from disque_trio.testing.simulated.search import Report, Trial, by_name, deep
from disque_trio.testing.simulated.states import State
from disque_trio.worker.app import App
from disque_trio.worker.enqueue import Call

SEEDS: Final = 10


@attrs.define(eq=False)
class Sim:
    """Runs scenarios of an app in simulated clusters."""

    again: str = ""
    """The arguments of pytest that run the test again, without the seed."""
    only: int | None = None
    """The only seed that is run."""
    at: tuple[str, int] | None = None
    """The only recipe and step of `idempotent`."""

    def run(
        self,
        scenario: Scenario,
        app: App[Any],
        *,
        state: Any = None,
        seeds: Iterable[int] | int = SEEDS,
        **setting: Any,
    ) -> None:
        """Run the scenario once for each seed (or this number of seeds from 0), with `nodes`,
        `workers` and the other fields of `Setting`. `state`, an object or a tuple of objects, is
        restored at the end of each run. Raises errors of the scenario, with the seed and the last
        events."""
        kept = State.of(state)
        for seed in self.seeds(seeds):
            recording = Recording()
            try:
                run(scenario, app, Setting(**setting), seed, state=kept, recording=recording)
            except Exception as error:
                error.add_note(f"disque_sim: seed {seed}\n{recording.lines()}\n{self.repeat(seed)}")
                raise
            finally:
                kept.restore()

    def idempotent(
        self,
        call: Call[Any],
        app: App[Any],
        *,
        state: Any,
        snapshot: Callable[[], Any] | None = None,
        recipes: Sequence[str] | None = None,
        seed: int = 0,
        **setting: Any,
    ) -> Report:
        """Run the job of a call without faults, then with each recipe before each step of its
        handler, and compare the final states: `snapshot()`, or copies of `state`. Raises
        `NotIdempotentError`, which names the differences, and the effects that occurred more often;
        effects are calls of public methods of `state`. Raises `ValueError` for a job with lease
        0."""
        if call.definition.options.lease == 0:
            raise ValueError("a job with lease 0 is delivered once at most: nothing to be tried")
        kept = State.of(state)
        trial = Trial(
            call=call,
            app=app,
            setting=Setting(**setting),
            seed=seed if self.only is None else self.only,
            state=kept,
            snapshot=kept.snapshot if snapshot is None else deep(snapshot),
            recipes=by_name(recipes),
            repeat=self.repeat,
            only=self.at,
        )
        try:
            return trial.run()
        finally:
            kept.restore()

    def seeds(self, seeds: Iterable[int] | int) -> Iterable[int]:
        """The seeds that are run."""
        if self.only is not None:
            return [self.only]
        return range(seeds) if isinstance(seeds, int) else seeds

    def repeat(self, seed: int) -> str:
        """The command that runs one seed again."""
        return f"again: pytest {self.again} --disque-seed {seed}"
