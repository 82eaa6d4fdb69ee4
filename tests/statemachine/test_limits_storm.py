"""Limits hold while links are cut and nodes are killed at random."""

import random
from bisect import bisect_right
from collections import Counter

import attrs
import pytest

from tests.cluster_rig import ClusterRig
from tests.statemachine.limits import Workers, leased, leased_of

DURATION = 20_000
NAMES = "abc"


@attrs.define(eq=False)
class Storm:
    """A cluster with faults, workers and producers, all of them by chance."""

    rig: ClusterRig
    rng: random.Random
    workers: Workers
    deliveries: list[int] = attrs.Factory(list)
    most: int = 0
    groups: str = ""
    """By chance, of which a job has one."""
    of_group: Counter[str] = attrs.Factory(Counter)
    """The most leases that each had at a time."""
    is_cut: bool = False
    down: str = ""

    def play(self) -> None:
        """Let it rage."""
        end = self.rig.now.mono + DURATION
        while self.rig.now.mono < end:
            self.rig.run(self.rng.choice((10, 40, 120)))
            before = len(self.workers.got)
            self.workers.take()
            self.deliveries += [self.rig.now.mono] * (len(self.workers.got) - before)
            self.most = max(self.most, leased(self.rig))
            for group in self.groups:
                self.of_group[group] = max(self.of_group[group], leased_of(self.rig, group))
            self.work()
            if self.rng.random() < 0.02:
                self.change()

    def work(self) -> None:
        """A producer adds a job, and some workers are done."""
        name = self.rng.choice(self.rig.names())
        queue = self.rig.node(name).queues.get(b"q")
        if queue is None or len(queue) < 5:
            group = ("GROUP", self.rng.choice(self.groups)) if self.groups else ()
            self.rig.request(name, "ADDJOB", "q", "body", 0, "REPLICATE", 1, "RETRY", 2, *group)
        done = [each for each in self.workers.got if self.rng.random() < 0.2]
        self.workers.got = [each for each in self.workers.got if each not in done]
        for host, client, id in done:
            if (host, client) in self.workers.clients:
                self.rig.request(host, "ACKJOB", id, client=client)
                self.rig.replies(host, client)
                self.rig.request(host, "GETJOB", "FROM", "q", client=client)

    def change(self) -> None:
        """A fault begins or ends."""
        if self.down:
            self.rig.start(self.down)
            self.workers.wait(self.down, 3)
            self.down = ""
        elif self.is_cut:
            self.rig.heal()
            self.is_cut = False
        elif self.rng.random() < 0.3:
            self.down = self.rng.choice(NAMES)
            self.rig.crash(self.down)
            kept = [each for each in self.workers.clients if each[0] != self.down]
            self.workers.clients = kept
        else:
            one, *others = self.rng.sample(NAMES, len(NAMES))
            for other in others[: self.rng.randint(1, 2)]:
                self.rig.cut(one, other)
            self.is_cut = True


def storm(seed: int, *limit: str | int, groups: str = "") -> Storm:
    rig = ClusterRig(*NAMES, seed=seed, latency=(1, 5, 30)[seed % 3])
    rig.form()
    rig.ask("a", "QUEUE", "LIMIT", "q", *limit)
    rig.run(100)
    found = Storm(rig, random.Random(seed), Workers(rig), groups=groups)
    for name in NAMES:
        found.workers.wait(name, 3)
    found.play()
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(3))
def test_leases_are_never_more_than_the_limit(seed: int) -> None:
    found = storm(seed, "CONCURRENCY", 4)

    assert found.most <= 4
    assert len(found.deliveries) > 20


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(2))
def test_deliveries_in_any_second_are_within_the_rate(seed: int) -> None:
    rate = 5
    found = storm(seed, "RATE", rate)

    times = found.deliveries
    most = max(bisect_right(times, time + 1000) - at for at, time in enumerate(times))
    assert most <= 1 + 1 + rate * 2.05
    assert len(times) > 20


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(2))
def test_both_limits_together_hold(seed: int) -> None:
    found = storm(seed, "CONCURRENCY", 4, "RATE", 5)

    times = found.deliveries
    most = max(bisect_right(times, time + 1000) - at for at, time in enumerate(times))
    assert found.most <= 4
    assert most <= 1 + 1 + 5 * 2.05
    assert len(times) > 20


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(3))
def test_leases_of_each_group_are_never_more_than_its_limit(seed: int) -> None:
    found = storm(seed, "GROUP-CONCURRENCY", 2, groups="xyz")

    assert max(found.of_group.values()) <= 2
    assert found.most > 2
    assert len(found.deliveries) > 20
