"""Checks that a handler is idempotent: its job is run without faults, then with each recipe before
each step, and the final states must be equal."""

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs

from disque_trio.terminal.counting import counted
from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.processes import WorkerProcess
from disque_trio.testing.simulated.recipes import RECIPES, TWICE, Moment, Recipe
from disque_trio.testing.simulated.run import Recording, Setting, run
from disque_trio.testing.simulated.states import State, differences
from disque_trio.testing.simulated.step import Steps
from disque_trio.worker.app import App
from disque_trio.worker.enqueue import Call

Snapshot = Callable[[], Any]

MOST_STEPS: Final = 12
KEY: Final = "disque-sim"
CALM: Final = Recipe("calm", "", "nothing happens", lambda _: None)


class NotIdempotentError(AssertionError):
    """Repeated runs of the handler have led to another state than one run."""


@attrs.define(eq=False)
class Try:
    """One run of the job, with a recipe before a step."""

    recipe: Recipe
    step: int
    call: Call[Any]
    snapshot: Snapshot
    found: Any = None
    """The snapshot at the end."""
    effects: Sequence[str] = ()
    steps: int = 0
    """The number of steps of the first run."""
    where: str = ""
    """Where the handler waited at that time."""
    cluster: Cluster | None = None
    is_made: bool = False
    first: Steps[Any] | None = None
    """The first run."""
    log: str = ""

    def before(
        self, process: WorkerProcess, steps: Steps[Any], number: int, task: str
    ) -> BaseException | None:
        """Called before a step of a handler: applies the recipe at its step."""
        if task != self.call.definition.name or self.first not in (None, steps):
            return None
        self.first = steps
        self.steps = number
        if self.is_made or number != self.step or self.cluster is None:
            return None
        self.is_made = True
        self.where = steps.where()
        run = process.runs[steps]
        moment = Moment(
            self.cluster,
            process,
            run.start.id.decode(),
            self.cluster.node_at(run.node),
            self.call.definition.options.lease,
        )
        return self.recipe.make(moment)

    async def scenario(self, cluster: Cluster) -> None:
        """Add the job, and wait until all jobs and faults have ended."""
        self.cluster = cluster
        options = attrs.evolve(self.call.definition.options, key=KEY)
        definition = attrs.evolve(self.call.definition, options=options)
        call = attrs.evolve(self.call, definition=definition)
        await call.enqueue()
        if self.recipe is TWICE:
            await call.enqueue()
        await cluster.drained()
        await cluster.until(lambda: not cluster.active_faults, limit=1e6)
        await cluster.drained()
        self.found = self.snapshot()

    def __str__(self) -> str:
        text = f"cause {self.recipe.cause}: {self.recipe.text}"
        if self.recipe is TWICE:
            return text
        where = f": {self.where}" if self.where else ""
        return f"{text}, before step {self.step}{where}"


@attrs.frozen
class Report:
    """The result of all tries."""

    task: str
    steps: int
    """The number of steps of the handler without faults, including the step after its end."""
    tries: int
    unmade: Sequence[str]
    """Recipes that could not be applied."""

    def __str__(self) -> str:
        text = f"{self.task} is idempotent: {self.steps} steps, {self.tries} tries"
        return text + (f"; not made: {', '.join(self.unmade)}" if self.unmade else "")


@attrs.define(eq=False, kw_only=True)
class Trial:
    """All tries of a call."""

    call: Call[Any]
    app: App[Any]
    setting: Setting
    seed: int
    state: State
    snapshot: Snapshot
    recipes: Sequence[Recipe]
    repeat: Callable[[int], str]
    """The command that runs a seed again."""
    only: tuple[str, int] | None = None
    """The only recipe and step."""

    def run(self) -> Report:
        """Run all tries. Raises `NotIdempotentError`."""
        calm = self._try(CALM, 0)
        made = [self._try(recipe, step) for recipe, step in self._tries(calm.steps)]
        wrong = [each for each in made if each.found != calm.found]
        if wrong:
            raise NotIdempotentError(self._text(calm, wrong))
        unmade = [f"{each}" for each in made if not each.is_made and each.recipe is not TWICE]
        return Report(self.call.definition.name, calm.steps, len(made), unmade)

    def _tries(self, steps: int) -> Iterator[tuple[Recipe, int]]:
        for recipe in self.recipes:
            for step in recipe.steps(steps, MOST_STEPS):
                if self.only in (None, (recipe.name, step)):
                    yield recipe, step

    def _try(self, recipe: Recipe, step: int) -> Try:
        found = Try(recipe, step, self.call, self.snapshot)
        recording = Recording()
        self.state.restore()
        try:
            run(
                found.scenario,
                self.app,
                self.setting,
                self.seed,
                state=self.state,
                recording=recording,
                before=found.before,
            )
        except Exception as error:
            error.add_note(f"disque_sim: {found}\n{recording.lines()}\n{self._again(found)}")
            raise
        finally:
            found.effects, found.log = recording.effects, recording.lines()
            found.cluster = None
        return found

    def _text(self, calm: Try, wrong: Sequence[Try]) -> str:
        first = wrong[0]
        name = self.call.definition.name
        lines = [f"{name} is not idempotent (seed {self.seed}, {first})"]
        lines += [f"  {each}" for each in differences(first.found, calm.found)]
        counts = Counter(first.effects)
        more = counts - Counter(calm.effects)
        lines += [f"  came {counted(counts[effect], 'time')}: {effect}" for effect in more]
        lines += [first.log, self._again(first)]
        lines += [f"also: {each}" for each in wrong[1:]]
        return "\n".join(lines)

    def _again(self, found: Try) -> str:
        at = f" --disque-at {found.recipe.name}:{found.step}"
        return self.repeat(self.seed) + ("" if found.recipe is CALM else at)


def deep(snapshot: Callable[[], Any]) -> Snapshot:
    """The test's snapshot as a deep copy, protected from later changes."""
    return lambda: copy.deepcopy(snapshot())


def by_name(names: Sequence[str] | None) -> list[Recipe]:
    """The recipes with these names; None is all. Raises `ValueError`."""
    known = {each.name: each for each in (*RECIPES, TWICE)}
    for name in names or ():
        if name not in known:
            raise ValueError(f"there is no recipe {name}: there are {', '.join(known)}")
    return list(known.values()) if names is None else [known[name] for name in names]
