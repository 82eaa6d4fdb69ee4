"""The program that adds jobs: it is told what to add on standard input, line by line.

Each line is a JSON object with `first` and `count` (numbers of the jobs), `pause` (seconds that a
job sleeps) and `payload` (bytes of a further argument). With `gap`, the jobs are added one at a
time, with so many seconds between them, and the answer has a list of pairs: when the call began and
how long it took. Without, they are added as the library does it best, and the answer has the
seconds that it took, and the CPU seconds of this process.
"""

import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

Arguments = tuple[int, float, str]
"""Of `handlers.run`."""
AddOne = Callable[[Arguments], Awaitable[object]]
AddMany = Callable[[Sequence[Arguments]], Awaitable[object]]


async def produce(add_one: AddOne, add_many: AddMany) -> None:
    """Do what the lines say until there are no more."""
    _say({"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        numbers = range(order["first"], order["first"] + order["count"])
        jobs = [(number, order["pause"], "x" * order["payload"]) for number in numbers]
        if "gap" in order:
            _say({"calls": await _one_by_one(add_one, jobs, order["gap"])})
            continue
        began, spent = time.monotonic(), time.process_time()
        await add_many(jobs)
        _say({"seconds": time.monotonic() - began, "cpu": time.process_time() - spent})


async def _one_by_one(
    add_one: AddOne, jobs: Sequence[Arguments], gap: float
) -> list[tuple[float, float]]:
    calls = []
    for job in jobs:
        began = time.monotonic()
        await add_one(job)
        calls.append((began, time.monotonic() - began))
        time.sleep(gap)
    return calls


def _say(facts: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def option(name: str) -> str:
    """The value after `--name` on the command line; empty if there is none."""
    words = sys.argv
    return words[words.index(f"--{name}") + 1] if f"--{name}" in words else ""
