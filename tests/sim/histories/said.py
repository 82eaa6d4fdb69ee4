"""Histories for tests: calls with their times, as any client would write them."""

import json
from typing import Any

from disque_trio.sim.histories.judge import Verdict, judge
from disque_trio.sim.histories.reading import Reader
from disque_trio.sim.histories.records import Limits

MANY = 24


def job(number: int, *, is_once: bool = False) -> str:
    """The id of a job; with `is_once` of one with RETRY 0."""
    return f"D-01234567-{number:0{MANY}d}-05a{0 if is_once else 1}"


class Said:
    """A history that is being written. Times are seconds."""

    def __init__(self, *, faults: str = "known") -> None:
        self.lines: list[dict[str, Any]] = [{"history": 1, "faults": faults}]
        self._calls = 0

    def call(
        self, begin: float, end: float, *words: object, client: str = "c", **outcome: Any
    ) -> None:
        """A call with its outcome: `reply`, `error` or `lost`; none leaves it open."""
        self._calls += 1
        call = {"client": client, "call": self._calls}
        request = [str(word) for word in words]
        self.lines.append({**call, "at": begin, "node": "n1", "request": request})
        if outcome:
            self.lines.append({**call, "at": end, **outcome})

    def add(self, begin: float, id: str, *options: object, queue: str = "q", body: str = "b",
            took: float = 0.1) -> None:  # fmt: skip
        """An ADDJOB that returns this job."""
        self.call(begin, begin + took, "ADDJOB", queue, body, 0, *options, reply=id)

    def get(self, begin: float, end: float, *ids: str, queue: str = "q", body: str = "b") -> None:
        """A GETJOB that returns these jobs, or null."""
        found = [[queue, id, body] for id in ids] or None
        self.call(begin, end, "GETJOB", "TIMEOUT", 5000, "COUNT", 9, "FROM", queue, reply=found)

    def ack(self, begin: float, id: str, command: str = "ACKJOB") -> None:
        """An acknowledgement."""
        self.call(begin, begin + 0.1, command, id, reply=1)

    def fault(self, at: float, until: float, **more: str) -> None:
        """A fault."""
        self.lines.append({"fault": "cut", "at": at, "until": until, **more})

    def verdict(self, *, has_all_clients: bool = True) -> Verdict:
        """The judge's."""
        reader = Reader()
        reader.feed([json.dumps(line).encode() + b"\n" for line in self.lines], "h")
        return judge(reader.history(Limits(), has_all_clients=has_all_clients))

    def broken(self) -> list[str]:
        """The properties that it breaks."""
        return sorted({each.property for each in self.verdict().violations})
