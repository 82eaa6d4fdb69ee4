"""Clients of a real cluster that record what they see, while its nodes are killed."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import attrs

from disque_trio.client import BlockingClient, DisqueError, Job, Recorder
from disque_trio.client.refusals import DuplicateJobError
from tests.cluster.processes import SOON_S, Cluster, eventually
from tests.cluster.talk import LOOPBACK

QUEUES: Final = ("many", "once", "keys")
RETRY_S: Final = 2
BETWEEN_KILLS: Final = 15
"""So many jobs are acknowledged from one kill to the next, however long that takes."""
KEYS: Final = 6
KEYS_LAST_S: Final = 30
"""Then others are used: keys with many ADDJOBs without an outcome are not judged."""


@attrs.define(eq=False)
class Crowd:
    """Producers and consumers in threads."""

    cluster: Cluster
    recorder: Recorder
    seed: int = 1
    producers: int = 2
    consumers: int = 3
    is_producing: bool = True
    is_careless: bool = True
    """Do consumers leave some jobs without an answer?"""
    is_over: bool = False
    counts: Counter[str] = attrs.Factory(Counter)
    idle: dict[int, float] = attrs.Factory(dict)
    """By consumer: for how long it has waited for jobs of all queues, and received none."""
    _threads: list[threading.Thread] = attrs.Factory(list)
    _errors: list[Exception] = attrs.Factory(list)

    def start(self) -> None:
        """Let them begin."""
        works = [(self._produce, n) for n in range(self.producers)]
        works += [(self._consume, n) for n in range(self.consumers)]
        for work, number in works:
            rng = random.Random(f"{self.seed}/{work.__name__}/{number}")
            thread = threading.Thread(target=self._do, args=(work, number, rng))
            self._threads.append(thread)
            thread.start()

    def drain(self, settle_s: float, slack_s: float) -> None:
        """Let producers end, and consumers take all jobs: the last fault is over."""
        self.is_producing = self.is_careless = False
        time.sleep(settle_s)
        self.idle.clear()
        enough = RETRY_S + 3 * slack_s
        eventually(
            lambda: len(self.idle) == self.consumers and min(self.idle.values()) > enough,
            SOON_S, "the consumers have taken everything",
        )  # fmt: skip

    def stop(self) -> None:
        """Let them end, and wait for them. Raises what one of them has raised."""
        self.is_producing, self.is_over = False, True
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _do(
        self, work: Callable[[int, random.Random], None], number: int, rng: random.Random
    ) -> None:
        try:
            work(number, rng)
        except Exception as error:  # `stop` raises it
            self._errors.append(error)

    def _client(self, rng: random.Random) -> BlockingClient:
        nodes = [f"{server.host}:{server.port}" for server in self.cluster.servers]
        rng.shuffle(nodes)
        url = "disque://" + ",".join(nodes)
        return BlockingClient(url, discover=False, recorder=self.recorder)

    def _produce(self, number: int, rng: random.Random) -> None:
        with self._client(rng) as client:
            for job in range(1_000_000):
                if not self.is_producing:
                    return
                body = f"{number}-{job}"
                with suppress(DisqueError):
                    self._add(client, rng, body)
                    self.counts["added"] += 1
                time.sleep(0.02)

    def _add(self, client: BlockingClient, rng: random.Random, body: str) -> None:
        draw = rng.random()
        if draw < 0.2:
            client.addjob("once", body, retry=0, replicate=1)
        elif draw < 0.5:
            key = f"k{rng.randrange(KEYS)}-{time.monotonic() // KEYS_LAST_S:.0f}"
            ways: tuple[Literal["return", "reject"], ...] = ("return", "reject")
            with suppress(DuplicateJobError):
                client.addjob(
                    "keys", body, retry=RETRY_S, replicate=2, unique=key, if_exists=rng.choice(ways)
                )
        else:
            client.addjob("many", body, retry=RETRY_S, replicate=rng.randint(1, 3), sync=1)

    def _consume(self, number: int, rng: random.Random) -> None:
        with self._client(rng) as client:
            while not self.is_over:
                began = time.monotonic()
                try:
                    jobs = client.getjob(*QUEUES, count=3, timeout=1)
                except DisqueError:
                    self.idle[number] = 0.0
                    continue
                waited = time.monotonic() - began
                self.idle[number] = 0.0 if jobs else self.idle.get(number, 0.0) + waited
                for job in jobs:
                    with suppress(DisqueError):
                        self._answer(client, rng, job)

    def _answer(self, client: BlockingClient, rng: random.Random, job: Job) -> None:
        draw = rng.random() if self.is_careless else 1.0
        if draw < 0.1:
            return
        if draw < 0.2:
            client.nack(job)
            return
        client.ackjob(job)
        self.counts["acked"] += 1


def storm(
    cluster: Cluster, path: Path, kills: int, *, settle_s: float, slack_s: float, seed: int = 1
) -> Recorder:
    """Kill nodes of the cluster one after the other under load, start each again, and let clients
    take all jobs in the end. Returns the recorder of all of them."""
    recorder = Recorder(path, has_all_faults=True)
    crowd = Crowd(cluster, recorder, seed)
    rng = random.Random(seed)
    crowd.start()
    try:
        for _ in range(kills):
            _work(crowd)
            victim = rng.choice(cluster.servers)
            with recorder.fault("kill", node=f"{LOOPBACK}:{victim.port}"):
                victim.kill()
                _work(crowd)
                cluster.heal()
        crowd.drain(settle_s, slack_s)
    finally:
        crowd.stop()
    recorder.close()
    return recorder


def _work(crowd: Crowd) -> None:
    enough = crowd.counts["acked"] + BETWEEN_KILLS
    eventually(lambda: crowd.counts["acked"] >= enough, SOON_S, "jobs are acknowledged")
