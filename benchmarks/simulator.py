"""The speed of the simulator, and the cost of gossip: `python -m benchmarks sim`.

Times are CPU times, which other programs affect little; garbage is collected between seeds, as in a
sweep. A *standard seed* is 120 simulated seconds of five nodes with ten jobs a second, each with
three copies, without faults.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.output import add_json, write_json
from disque_trio.cli.sim.pool import cycles_collected_between_seeds
from disque_trio.sim.checkers.verdict import judge
from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Add, Consumer, Plan
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.outbox import Outbox
from disque_trio.wire.frames import encode

SECOND: Final = 1_000_000
NODES: Final = 5
STANDARD: Final = 120
"""Seconds of a standard seed."""
SIZES: Final = (3, 10, 30, 100)
"""Sizes of the clusters whose gossip is measured."""
GOSSIP_SECONDS: Final = 60
WARM_UP: Final = 2
"""Simulated seconds before time 0."""
BARE_EVENTS: Final = 500_000
BAR: Final = 40
"""Columns of the longest bar."""

Rates = dict[str, float]


# Plans.


def standard(seed: int, *, clocks: bool = True, seconds: int = STANDARD, rate: int = 10) -> Plan:
    """A standard seed."""
    adds = tuple(
        Add(
            at=number * SECOND // rate,
            node=1 + number % NODES,
            producer=f"p{1 + number % NODES}",
            queue="q",
            body=f"job {number}",
            replicate=3,
            retry_s=10,
        )
        for number in range(seconds * rate)
    )
    consumers = tuple(
        Consumer(name=f"c{node}", node=node, queues=("q",)) for node in range(1, NODES + 1)
    )
    return Plan(
        scenario="standard",
        seed=seed,
        nodes=NODES,
        adds=adds,
        consumers=consumers,
        chaos=seconds * SECOND,
        vector_clocks=clocks,
    )


def idle(nodes: int, seconds: int) -> Plan:
    """Nodes without jobs, which exchange only gossip."""
    return Plan(
        scenario="idle",
        seed=1,
        nodes=nodes,
        chaos=seconds * SECOND,
        drain=1,
        vector_clocks=False,
    )


# Stopwatches.


def _timed(act: Callable[[], int]) -> tuple[int, float]:
    began = time.process_time()
    count = act()
    return count, time.process_time() - began


def _play(plan: Plan, *, judged: bool) -> int:
    if not judged:
        return simulate(plan).steps
    bench = judge(plan)
    steps = simulate(plan, bench.see).steps
    if not bench.finish().ok:
        raise AssertionError(f"seed {plan.seed} of an undisturbed cluster is not judged well")
    return steps


def _play_all(seeds: int, *, clocks: bool, judged: bool) -> int:
    steps = 0
    for seed in range(seeds):
        steps += _play(standard(seed, clocks=clocks), judged=judged)
        gc.collect()
    return steps


def speeds(seeds: int) -> Rates:
    """Events per second and seeds per core-hour of standard seeds."""
    found: Rates = {}
    for name, clocks, judged in (
        ("without vector clocks", False, False),
        ("with vector clocks", True, False),
        ("with vector clocks and judge", True, True),
    ):
        with cycles_collected_between_seeds():
            steps, seconds = _timed(partial(_play_all, seeds, clocks=clocks, judged=judged))
        found[f"events/s, {name}"] = steps / seconds
        found[f"us per event, {name}"] = seconds / steps * 1e6
        found[f"standard seeds per core-hour, {name}"] = seeds * 3600 / seconds
    return found


def overhead() -> Rates:
    """The cost of an event that does nothing: the event heap alone."""
    engine = Engine()

    def again(number: int) -> None:
        engine.later(1000 + number, again, number)

    for number in range(50):
        engine.later(number, again, number)

    def run() -> int:
        while engine.steps < BARE_EVENTS:
            engine.run(engine.now + SECOND)
        return engine.steps

    steps, seconds = _timed(run)
    return {"us per event of the bare engine": seconds / steps * 1e6}


class _Stopwatch(Machine):
    """A machine that measures its own time."""

    spent = 0
    calls = 0

    def _time(self, name: str, *args: Any) -> Any:
        began = time.thread_time_ns()
        outcome = getattr(super(), name)(*args)
        _Stopwatch.spent += time.thread_time_ns() - began
        _Stopwatch.calls += 1
        return outcome

    def request(self, *args: Any) -> Any:
        """As the machine's."""
        return self._time("request", *args)

    def message(self, *args: Any) -> Any:
        """As the machine's."""
        return self._time("message", *args)

    def tick(self, *args: Any) -> Any:
        """As the machine's."""
        return self._time("tick", *args)

    def take(self, *args: Any) -> Any:
        """As the machine's."""
        return self._time("take", *args)


def share_of_machine() -> Rates:
    """The machines' share of the time of a run, less the cost of measuring."""
    began = time.thread_time_ns()
    for _ in range(100_000):
        time.thread_time_ns()
    tick = (time.thread_time_ns() - began) / 100_000
    _Stopwatch.spent = _Stopwatch.calls = 0
    steps = simulate(standard(1, clocks=False), machine_factory=_Stopwatch).steps
    return {
        "us per event in the machines": (_Stopwatch.spent - tick * _Stopwatch.calls) / steps / 1e3
    }


def compression() -> Rates:
    """Simulated seconds per second of an idle cluster."""
    hour = 3600
    _, seconds = _timed(lambda: simulate(idle(NODES, hour)).steps)
    return {"time compression when idle": hour / seconds}


# Gossip.


class _TrafficCounter(Machine):
    """A machine whose messages and their bytes are counted."""

    messages = 0
    size = 0

    def take(self) -> Outbox:
        """As the machine's."""
        out = super().take()
        myself = self.state.cluster.myself
        for targets, message in out.messages:
            frame = encode(myself.id, myself.port, myself.flags, message, 0)
            _TrafficCounter.messages += len(targets)
            _TrafficCounter.size += len(targets) * len(frame)
        return out


@attrs.frozen
class Gossip:
    """The cost of gossip per node, in a cluster of this size."""

    nodes: int
    messages: float
    """Sent per second."""
    size: float
    """Bytes sent per second."""
    cpu: float
    """Microseconds of CPU time per simulated second, engine included."""
    wall: float
    """Seconds that the whole run took."""


def gossip(nodes: int, seconds: int) -> Gossip:
    """Measure the cost of gossip."""
    plan = idle(nodes, seconds)
    began = time.monotonic()
    _, cpu = _timed(lambda: simulate(plan).steps)
    wall = time.monotonic() - began
    _TrafficCounter.messages = _TrafficCounter.size = 0
    short = idle(nodes, min(seconds, 15))
    lasted = simulate(short, machine_factory=_TrafficCounter).end / SECOND + WARM_UP
    return Gossip(
        nodes=nodes,
        messages=_TrafficCounter.messages / nodes / lasted,
        size=_TrafficCounter.size / nodes / lasted,
        cpu=cpu * 1e6 / nodes / (seconds + WARM_UP),
        wall=wall,
    )


# The command.


def main(argv: Sequence[str]) -> int:
    """Measure, and print; the exit code."""
    options = _options(argv)
    console = Console(highlight=False)
    rates: Rates = {}
    measures: dict[str, Callable[[], Rates]] = {
        "standard seeds": partial(speeds, options.seeds),
        "the bare engine": overhead,
        "the machines": share_of_machine,
        "idling": compression,
    }
    for about, measure in measures.items():
        with console.status(about):
            rates |= measure()
    console.print(_table(rates))
    weighed = []
    for nodes in options.sizes:
        with console.status(f"gossip among {nodes} nodes"):
            weighed.append(gossip(nodes, options.seconds))
    for line in bars("gossip: CPU per node", _points(weighed, "cpu"), "us/s"):
        console.print(line)
    for line in bars("gossip: bytes sent per node", _points(weighed, "size"), "B/s"):
        console.print(line)
    facts = {
        "python": sys.version.split()[0],
        "rates": rates,
        "gossip": [attrs.asdict(each) for each in weighed],
    }
    write_json(options.json, facts)
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="standard seeds of each kind (5)")
    parser.add_argument(
        "--sizes",
        type=_sizes,
        default=list(SIZES),
        metavar="N,N",
        help="clusters whose gossip is weighed (3,10,30,100)",
    )
    parser.add_argument(
        "--seconds", type=int, default=GOSSIP_SECONDS, help="for so many simulated seconds (60)"
    )
    add_json(parser)
    return parser.parse_args(argv)


def _sizes(word: str) -> list[int]:
    return [int(size) for size in word.split(",")]


def _points(weighed: Sequence[Gossip], name: str) -> list[tuple[str, float]]:
    return [(f"{each.nodes} nodes", getattr(each, name)) for each in weighed]


def _table(rates: Rates) -> Table:
    table = Table(
        "the heap engine", title=f"standard seeds: {STANDARD} s, {NODES} nodes, 10 jobs/s"
    )
    table.add_column("", justify="right")
    for name, rate in rates.items():
        table.add_row(name, f"{rate:,.2f}" if rate < 100 else f"{rate:,.0f}")
    return table


def bars(title: str, points: Sequence[tuple[str, float]], unit: str) -> Iterator[str]:
    """A bar for each point, the longest for the largest."""
    yield title
    largest = max((value for _, value in points), default=0) or 1
    width = max((len(name) for name, _ in points), default=0)
    for name, value in points:
        yield f"  {name:>{width}}  {'█' * max(1, round(value / largest * BAR))} {value:,.0f} {unit}"
