"""Nodes that ignore one option of a command, or one directive; workers that ignore one setting.

They are made from the tables of the node: nothing here knows how an option is carried out.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.statemachine.base import Now
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.rows import Command
from disque_trio.statemachine.commands.table import ROWS
from disque_trio.statemachine.machine import Machine

_OPTION: Final = re.compile(r"\[([A-Z][A-Z-]{2,})( [^\]]+| \[[a-z]+\])?\]|\[(bcast)\]")
_OF_JOBS: Final = (
    "addjob", "getjob", "ackjob", "nack", "release", "enqueue", "waitjob", "pause", "purge",
    "redrive", "qscan", "jscan", "qstat", "queue",
)  # fmt: skip
"""Commands whose options are promises about jobs; the others are about the process."""


def options() -> dict[str, dict[str, bool]]:
    """By command and option: does it take a value?"""
    return {
        row.name: {
            (found[1] or found[3]).upper(): bool(found[2]) for found in _OPTION.finditer(row.usage)
        }
        for row in ROWS
        if row.name in _OF_JOBS
    }


def without(words: list[bytes], command: str, option: str, *, takes_value: bool) -> list[bytes]:
    """The request as it would be if nobody had given the option."""
    if words[0].lower() != command.encode():
        return words
    first = 4 if command == "addjob" else 1
    for at in range(first, len(words)):
        if words[at].upper() == b"FROM":
            break
        if words[at].upper() == option.encode():
            return words[:at] + words[at + 1 + takes_value :]
    return words


def ignoring(command: str, option: str) -> type[Machine]:
    """A machine that ignores the option."""
    takes_value = options()[command][option]

    class Ignorant(Machine):
        def request(self, client: Client, args: list[bytes], now: Now) -> Command | None:
            words = without(args, command, option, takes_value=takes_value)
            return super().request(client, words, now)

        def requests(
            self,
            client: Client,
            requests: Sequence[list[bytes]],
            now: Now,
            clock: Callable[[], int],
        ) -> int:
            words = [without(each, command, option, takes_value=takes_value) for each in requests]
            return super().requests(client, words, now, clock)

    return Ignorant


def judged(plan: Plan, played: Plan | None = None, **rest: Any) -> Verdict:
    """The verdict on a run of `played`, by what `plan` promises."""
    judging = judge(plan)
    simulate(played or plan, judging.see, **rest)
    return judging.finish()


def judged_without_directive(plan: Plan, name: str) -> Verdict:
    """Of nodes that ignore the directive."""
    config = tuple(pair for pair in plan.config if pair[0] != name)
    zones = () if name == "replica-zone" else plan.zones
    return judged(plan, attrs.evolve(plan, config=config, zones=zones))


def judged_without_setting(plan: Plan, name: str) -> Verdict:
    """Of workers that ignore the setting of a consumer."""
    default = attrs.fields_dict(type(plan.consumers[0]))[name].default
    change: dict[str, Any] = {name: default}
    consumers = tuple(attrs.evolve(each, **change) for each in plan.consumers)
    return judged(plan, attrs.evolve(plan, consumers=consumers))
