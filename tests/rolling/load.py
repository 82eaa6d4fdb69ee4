"""Producers with every option, and consumers, at whatever node answers; and what became of it."""

import random
import threading
import time
from collections import Counter
from typing import Final

import attrs

from disque_trio.statemachine.base import Failure, Reply
from tests.cluster.talk import Client, as_items, as_text

OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "plain": ("REPLICATE", "2", "RETRY", "5"),
    "once": ("REPLICATE", "1", "RETRY", "0"),
    "delayed": ("REPLICATE", "2", "RETRY", "5", "DELAY", "1"),
    "priority": ("REPLICATE", "2", "RETRY", "5", "PRIORITY", "3"),
    "limit": ("REPLICATE", "2", "RETRY", "5", "LIMIT", "50"),
    "backoff": ("REPLICATE", "2", "RETRY", "5", "BACKOFF", "1"),
    "unique": ("REPLICATE", "2", "RETRY", "5", "UNIQUE", "{key}"),
    "sync": ("REPLICATE", "3", "RETRY", "5", "SYNC", "2"),
}
"""Options of ADDJOB, by what a job is called in the figures."""
KEYS: Final = 200
TIMEOUT_MS: Final = 5000
SLOW_S: Final = 1.0
"""An answer is at once if it takes less: a node that is alone waits for no other."""


@attrs.define(eq=False)
class Load:
    """What was asked and answered. Threads only add to it."""

    ports: list[int]
    added: dict[bytes, str] = attrs.Factory(dict)
    """The option of each job that was confirmed."""
    delivered: Counter[bytes] = attrs.Factory(Counter)
    acknowledged: set[bytes] = attrs.Factory(set)
    late: Counter[str] = attrs.Factory(Counter)
    """Deliveries of jobs that had been acknowledged before they were asked for, by option."""
    refusals: Counter[tuple[str, str]] = attrs.Factory(Counter)
    """By option and code."""
    slow: dict[str, tuple[int, float]] = attrs.Factory(dict)
    """Refusals that were not at once, by option and text: how many, and the longest in seconds."""
    broken: int = 0
    """Requests without an answer."""
    is_over: threading.Event = attrs.Factory(threading.Event)
    is_drained: threading.Event = attrs.Factory(threading.Event)

    def produce(self, seed: int) -> None:
        """Add jobs until it is over."""
        rng, number = random.Random(seed), 0
        while not self.is_over.is_set():
            number += 1
            option = rng.choice(list(OPTIONS))
            words = [word.format(key=rng.randrange(KEYS)) for word in OPTIONS[option]]
            body = f"{seed}-{number}"
            began = time.monotonic()
            reply = self._ask(rng, "ADDJOB", "q", body, TIMEOUT_MS, *words)
            if isinstance(reply, Failure):
                text = reply.text.decode()
                self.refusals[option, text.split()[0]] += 1
                seconds = time.monotonic() - began
                if seconds > SLOW_S:
                    named = f"{option}: {text.partition(':')[0]}"
                    count, longest = self.slow.get(named, (0, 0.0))
                    self.slow[named] = count + 1, max(longest, seconds)
            elif reply is not None:
                self.added[as_text(reply)] = option
            time.sleep(0.01)

    def consume(self, seed: int) -> None:
        """Take jobs, give some back, and acknowledge the others, until there are no more."""
        rng = random.Random(-seed)
        while not self.is_drained.is_set():
            before = set(self.acknowledged)
            reply = self._ask(rng, "GETJOB", "TIMEOUT", 500, "COUNT", 20, "FROM", "q")
            if reply is None or isinstance(reply, Failure):
                time.sleep(0.05)
                continue
            ids = [as_text(as_items(job)[1]) for job in as_items(reply)]
            for each in ids:
                self.delivered[each] += 1
                self.late[self.added.get(each, "?")] += each in before
            if back := [each for each in ids if rng.random() < 0.05]:
                how = rng.choice([("NACK",), ("NACK", "DELAY", "1"), ("RELEASE", "DELAY", "1")])
                for each in back:
                    self._ask(rng, how[0], *how[1:], each)
            done = [each for each in ids if each not in back]
            if done and isinstance(self._ask(rng, "ACKJOB", *done), int):
                self.acknowledged |= set(done)

    def _ask(self, rng: random.Random, *words: str | int | bytes) -> Reply:
        """One request on a connection of its own; None if there is no answer."""
        try:
            client = Client(rng.choice(self.ports), 30)
        except OSError:
            self.broken += 1
            return None
        try:
            client.send(*words)
            return client.reply()
        except OSError:
            self.broken += 1
            return None
        finally:
            client.close()

    # What is judged.

    @property
    def lost(self) -> list[bytes]:
        """Jobs that were confirmed and never delivered, but for those with RETRY 0."""
        return [each for each in self.missing if self.added[each] != "once"]

    @property
    def missing(self) -> list[bytes]:
        """All of these. A job with RETRY 0 may have been in an answer that did not arrive."""
        return [each for each in list(self.added) if each not in self.delivered]

    @property
    def once_twice(self) -> list[bytes]:
        """Jobs with RETRY 0 that were delivered more than once."""
        return [
            each
            for each, option in self.added.items()
            if option == "once" and self.delivered[each] > 1
        ]
