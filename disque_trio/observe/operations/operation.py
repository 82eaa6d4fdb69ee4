"""What an operation is, and what the plans of operations have in common."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeVar

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.observe.operations.members import Names
from disque_trio.observe.values import Json
from disque_trio.terminal.counting import counted
from disque_trio.worker.operating.asking import Found, at_each, unwrap
from disque_trio.worker.operating.plans import MistakeError, Outcome, Plan, Report, Run

MANY: Final = 100
"""A person must type the queue's name to redrive or drop more dead jobs than this."""
MOST: Final = 1_000_000
"""The largest value of an argument without a bound of its own."""
T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Argument:
    """An argument of an operation."""

    name: str
    about: str
    kind: Literal["text", "body", "number", "seconds", "flag"] = "text"
    choices: tuple[str, ...] = ()
    default: str | float | None = None
    """For the console's form and the command line."""
    least: float | None = None
    """The smallest number; if None, the number must be above 0."""
    most: float = MOST
    is_required: bool = False
    is_placed: bool = False
    """Is it positional on the command line, although it is not required?"""
    is_asked: bool = False
    """Does the console ask for it where its page does not determine it?"""
    is_rare: bool = False
    """Does the console ask for it among the options that most people leave at their defaults?"""

    def check(self, value: object) -> None:
        """Raise `MistakeError` for an invalid value."""
        if self.kind == "flag":
            if not isinstance(value, bool):
                raise MistakeError(f"'{self.name}' is neither true nor false")
        elif self.kind in ("text", "body"):
            if not isinstance(value, str):
                raise MistakeError(f"'{self.name}' is not a text")
            if self.choices and value not in self.choices:
                choices = ", ".join(self.choices)
                raise MistakeError(f"{self.name} '{value}' is not one of {choices}")
        else:
            self._check_number(value)

    def _check_number(self, value: object) -> None:
        number = float("nan")
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = value
        least = 1 if self.least is None else self.least
        if self.least is None and not number > 0:  # also refuses NaN
            raise MistakeError(f"'{self.name}' is not a number above 0")
        is_within = (self.least is None or least <= number) and number <= self.most
        if not is_within or (self.kind == "number" and number != int(number)):
            raise MistakeError(f"'{self.name}' is not a number from {least:,} to {self.most:,}")


@attrs.frozen(kw_only=True)
class Operation:
    """An operation. On the command line it is `family name`, such as `disque-trio queues pause`."""

    family: str
    """`queues`, `jobs`, `flows`, `workers`, `schedules` or `nodes`."""
    name: str
    letter: str
    """The key of the keyboard in the console."""
    label: str
    about: str
    """A sentence for help."""
    arguments: tuple[Argument, ...]
    """Required arguments come first."""
    plan: Callable[[Client, Json], Awaitable[Plan]]
    """Returns the plan. Raises `MistakeError` for an invalid operation, and `DisqueError`."""
    when: tuple[str, ...] = ()
    """States in which the console offers it; if empty, it is always offered."""
    is_grave: bool = False
    """Is it impossible to undo?"""

    @property
    def key(self) -> str:
        """Family and name, such as `queues pause`."""
        return f"{self.family} {self.name}"

    def as_json(self) -> Json:
        """Return the operation for the browser."""
        facts = attrs.asdict(self, filter=lambda field, _: field.name != "plan")
        return {"key": self.key, **facts}

    async def planned(self, client: Client, args: Json) -> Plan:
        """Return the plan with these arguments. Raise `MistakeError` and `DisqueError`."""
        for each in self.arguments:
            value = args.get(each.name)
            if each.is_required and each.kind in ("text", "body"):
                continue  # the plan reads it, as text or in base64
            if value is not None:
                each.check(value)
            elif each.is_required:
                raise MistakeError(f"'{each.name}' is missing")
        return await self.plan(client, args)


# What plans have in common.


LATER: Final = "the other nodes inform it when they reach it"
"""For an operation that nodes forward to each other."""
_LEFT_OUT: Final = " is left out: "


def silent(unreached: Mapping[str, str], names: Names, then: str = "") -> list[str]:
    """Return lines about nodes that did not answer, where the operation has no effect now. `then`
    is what happens to them later."""
    more = f"; {then}" if then else ""
    return [
        f"{names(node)}{_LEFT_OUT}{why.removesuffix('.')}{more}" for node, why in unreached.items()
    ]


def each_once(lines: Iterable[str]) -> list[str]:
    """Keep the last of several lines of `silent` about one node: they differ in how long it has
    been silent."""
    return list({line.partition(_LEFT_OUT)[0]: line for line in lines}.values())


def unanswered(unreached: Mapping[str, str], names: Names) -> str:
    """Return which nodes did not answer, as a possible reason why nothing was found; empty if all
    did."""
    if not unreached:
        return ""
    nodes = ", ".join(map(names, unreached))
    do = "does" if len(unreached) == 1 else "do"
    return f"; {nodes} may know more, but {do} not answer"


async def answering(client: Client) -> Found[Address]:
    """Return the nodes that answer."""

    async def ask(node: Address) -> list[Address]:
        unwrap(*await client.ask(node, [commands.ping()]))
        return [node]

    return await at_each(client, ask)


def one_by_one(
    client: Client,
    nodes: Sequence[Address],
    names: Names,
    asked: Command[T],
    describe: Callable[[T], tuple[str, int]],
) -> Run:
    """Return a run that asks the nodes in sequence. `describe` returns the text for a reply and the
    number of changes."""

    async def run(outcome: Outcome, _report: Report) -> None:
        for node in nodes:
            try:
                text, count = describe(unwrap(*await client.ask(node, [asked])))
            except DisqueError as error:
                outcome.failed.append(f"{names(node)}: {error}")
            else:
                outcome.says.append(f"{names(node)}: {text}")
                outcome.count += count

    return run


def of_jobs(done: str) -> Callable[[int], tuple[str, int]]:
    """Return `describe` for replies that are a number of jobs."""
    return lambda count: (f"{done} {counted(count, 'job')}", count)
