"""Recipes that make a job run twice: each cause of a duplicate that a handler may encounter
(docs/guarantees.md)."""

import itertools
from collections.abc import Callable
from typing import Final

import attrs

from disque_trio.sim.fault_controls import ActiveFault
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.testing.simulated.cluster import Cluster
from disque_trio.testing.simulated.processes import WorkerProcess

SOON_S: Final = 1.0
LATE: Final[Micros] = 1_500_000
"""Longer than the half second between WILLQUEUE and the enqueueing."""


class InjectedError(Exception):
    """Raised in a handler where it waits, to test its next attempt."""


@attrs.define(eq=False)
class Moment:
    """The situation before a step of a handler."""

    cluster: Cluster
    process: WorkerProcess
    job: str
    node: str
    """The node that delivered the job."""
    lease: float

    def others(self, name: str) -> list[str]:
        """All nodes, or all workers, except this one."""
        kind = name[0]
        return [each for each in self.cluster.names() if each[0] == kind and each != name]

    def undo(self, active: ActiveFault, seconds: float) -> None:
        """Undo a fault after this time."""
        self.cluster.later(seconds, active.undo)


Make = Callable[[Moment], BaseException | None]


@attrs.frozen
class Recipe:
    """A cause of a duplicate, and the function that produces it."""

    name: str
    cause: str
    """The name of the cause in docs/guarantees.md."""
    text: str
    make: Make
    at: str = "each"
    """The steps before which it is applied: `each`, `last` (the handler has returned), `inner`
    (where it waits), or `second`."""

    def steps(self, count: int, most: int) -> list[int]:
        """The numbers of the steps before which it is applied, evenly spread if there are more than
        `most`. The last step is after the return of the handler."""
        found = {
            "each": range(1, count + 1),
            "last": range(count, count + 1),
            "inner": range(2, count),
            "second": range(min(2, count), min(2, count) + 1),
        }[self.at]
        if len(found) <= most:
            return list(found)
        return [found[n * (len(found) - 1) // (most - 1)] for n in range(most)]


def _kill(moment: Moment) -> None:
    moment.undo(moment.cluster.crash(moment.process.name), SOON_S)


def _pause(moment: Moment) -> None:
    moment.undo(moment.cluster.pause(moment.process.name), 1.5 * moment.lease)


def _isolate(moment: Moment) -> None:
    moment.undo(moment.cluster.isolate(moment.process.name), 1.5 * moment.lease)


def _raise(moment: Moment) -> BaseException:
    moment.cluster.note(moment.process.name, "an error is raised in the handler")
    return InjectedError("disque_sim raises this, to see what the next attempt does")


def _stop(moment: Moment) -> None:
    moment.process.stop()
    moment.process.stop()
    name = moment.process.name
    moment.cluster.later(2 * SOON_S, lambda: moment.cluster.restart(name))


def _enqueue(moment: Moment) -> None:
    cluster = moment.cluster
    cluster.note("story", f"asks {moment.node} to queue the job again")
    cluster.command(moment.node, "ENQUEUE", moment.job)


def _split(moment: Moment) -> None:
    ours = [moment.node, moment.process.name]
    theirs = [*moment.others(moment.node), *moment.others(moment.process.name)]
    moment.undo(moment.cluster.partition(ours, theirs), 2 * moment.lease)


def _sides(moment: Moment) -> list[list[str]]:
    """Three sides: the node alone, and two sides of the others, each with a worker."""
    worker, nodes = moment.process.name, moment.others(moment.node)
    return [[moment.node], [*nodes[::2], worker], [*nodes[1::2], *moment.others(worker)]]


def _both(moment: Moment) -> None:
    """Kill the worker while its node cannot detect that. When the lease ends, no node learns that
    another one enqueues the job."""
    moment.undo(moment.cluster.partition(*_sides(moment)), 2 * moment.lease)
    _kill(moment)


def _late(moment: Moment) -> None:
    """As `_both`, but nodes reach each other, with a delay that is too long."""
    cluster, workers = moment.cluster, list(moment.cluster.workers)
    nodes = [name for name in cluster.names() if name not in workers]
    for side in _sides(moment):
        for worker in side:
            if worker in workers:
                others = [node for node in nodes if node not in side]
                moment.undo(cluster.partition([worker], others), 2 * moment.lease)
    for source, target in itertools.permutations(nodes, 2):
        moment.undo(cluster.delay(source, target, LATE), 2 * moment.lease)
    cluster.note("nodes", f"hear each other {LATE / 1_000_000:g} s later")
    _kill(moment)


def _stall(moment: Moment) -> None:
    moment.undo(moment.cluster.pause(moment.node), 1.5 * moment.lease)
    moment.undo(moment.cluster.isolate(moment.process.name), 1.2 * moment.lease)


def _forget_ack(moment: Moment) -> None:
    """Lose an acknowledgement. The worker crashes, too, because it has a record of the job."""
    cluster, victims = moment.cluster, (moment.node, moment.process.name)
    for other in moment.others(moment.node):  # a cut would only delay it
        moment.undo(cluster.drop(moment.node, other), SOON_S)
    cluster.note(moment.node, "loses all that it says to other nodes")

    def crash() -> None:
        for each in victims:
            moment.undo(cluster.crash(each), SOON_S)

    cluster.later(SOON_S / 2, crash)


RECIPES: Final[tuple[Recipe, ...]] = (
    Recipe("killed", "D0", "the worker is killed", _kill),
    Recipe("raised", "D0", "an error is raised", _raise, "inner"),
    Recipe("stopped", "D1", "the worker stands still for longer than the lease", _pause),
    Recipe("cut", "D1", "the worker is cut from all nodes for longer than the lease", _isolate),
    Recipe("ended", "D0", "the worker is told to stop, and does not wait", _stop),
    Recipe("split", "D2", "the node and the worker are cut from all others", _split),
    Recipe(
        "both-sides",
        "D4",
        "the worker is killed, and nodes cut from each other queue the job",
        _both,
    ),
    Recipe(
        "late",
        "D5",
        "the worker is killed, and nodes queue the job that hear each other late",
        _late,
    ),
    Recipe("stalled", "D1", "the node stands still, and the worker is cut off", _stall),
    Recipe(
        "ack-lost",
        "D3a",
        "node and worker crash before others know of the acknowledgement",
        _forget_ack,
        "last",
    ),
    Recipe("asked", "D0", "somebody queues the job again", _enqueue, "second"),
)
TWICE: Final = Recipe(
    "twice", "D13", "its producer adds it twice, with one key", lambda _: None, "second"
)
"""Carried out by the scenario itself."""
