"""A run of chaos: rounds of faults under load, each followed by calm; in the end clients take all
jobs that are left."""

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import attrs

from disque_trio.client import Recorder
from tests.chaos.faults import Faults
from tests.chaos.links import Links
from tests.cluster.histories import Crowd
from tests.cluster.processes import NODE_TIMEOUT, Cluster

SETTLE_S: Final = 10.0
"""So long after a round of faults the cluster may need to be calm."""
SLACK_S: Final = 5.0
ROUND_S: Final = 20.0
CALM_S: Final = SETTLE_S + 10.0
"""How long each round is calm: the judge judges more of these."""
MOST_AT_ONCE: Final = 3
LONGEST_S: Final = 6.0
OPTIONS: Final = (
    *("--cluster-node-timeout", str(NODE_TIMEOUT), "--loglevel", "notice"),
    *("--appendonly", "yes"),
)
"""Links add `--appendfsync`."""
Say = Callable[[str], object]


@attrs.frozen(eq=False, kw_only=True)
class Result:
    """What has happened."""

    faults: Counter[str]
    rounds: int
    history: Path
    complaints: list[str]
    """Of nodes that ended by themselves, or left a traceback."""


@attrs.define(eq=False)
class Chaos:
    """A cluster that suffers."""

    directory: Path
    seed: int
    links: Links
    faults_of: Callable[[Cluster, Any, Recorder, random.Random], Faults[Any]]
    say: Say = lambda _: None
    """Gets what goes on now."""
    round_s: float = ROUND_S
    calm_s: float = CALM_S
    settle_s: float = SETTLE_S
    counts: Counter[str] = attrs.Factory(Counter)
    rounds: int = 0

    def run(self, until: float) -> Result:
        """Rounds until then, by `time.monotonic`; one at least."""
        recorder = Recorder(self.directory / "history.jsonl", has_all_faults=True)
        with self.links as links:
            servers = [
                links.server(number, self.directory / f"n{number}", OPTIONS)
                for number in range(1, links.nodes + 1)
            ]
            try:
                self.say("start")
                cluster = Cluster(servers)
                for server in servers:
                    server.start()
                for server in servers:
                    server.wait()
                for number in range(2, links.nodes + 1):
                    servers[0].client.call("CLUSTER", "MEET", *links.seen(number))
                cluster.wait()
                faults = self.faults_of(cluster, links, recorder, random.Random(self.seed))
                self._load(Crowd(cluster, recorder, self.seed), faults, until)
            finally:
                complaints = [complaint for server in servers for complaint in server.close()]
        recorder.close()
        return Result(
            faults=self.counts,
            rounds=self.rounds,
            history=recorder.path,
            complaints=complaints,
        )

    def _load(self, crowd: Crowd, faults: Faults[Any], until: float) -> None:
        crowd.start()
        try:
            while not self.rounds or time.monotonic() < until:
                self.rounds += 1
                with faults.recorder.fault("round"):
                    self._suffer(faults)
                    self.say("heal")
                    faults.cluster.heal()
                self.say("calm")
                time.sleep(self.calm_s)
            self.say("take all jobs")
            crowd.drain(self.settle_s, SLACK_S)
        finally:
            crowd.stop()

    def _suffer(self, faults: Faults[Any]) -> None:
        """Some faults at once, which begin and end at different times."""
        rng, end = faults.rng, time.monotonic() + self.round_s
        active: list[tuple[float, str, ExitStack]] = []
        with ExitStack() as all_of_them:
            while (now := time.monotonic()) < end:
                for each in [each for each in active if each[0] <= now]:
                    active.remove(each)
                    each[2].close()
                if len(active) < MOST_AT_ONCE:
                    stack = all_of_them.enter_context(ExitStack())
                    if kind := faults.begin(stack):
                        self.counts[kind] += 1
                        active.append((now + rng.uniform(0.5, LONGEST_S), kind, stack))
                        self.say(", ".join(kind for _, kind, _ in active))
                time.sleep(rng.uniform(0.2, 2.0))
