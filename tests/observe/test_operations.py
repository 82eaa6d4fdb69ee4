"""Each operation is in the console, on the command line, in `App.admin` and in the manual."""

import re
from itertools import groupby

import anyio
import attrs
import pytest

from disque_trio.cli.operating import flows, jobs, nodes, queues, schedules, workers
from disque_trio.client import Client
from disque_trio.observe.operations import OPERATIONS
from disque_trio.observe.operations.operation import Argument, Operation
from disque_trio.terminal.options import Command, options_of
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.operating.plans import MistakeError, Plan
from tests.trees import HOME

COMMANDS = {
    "queues": queues.PROGRAM.commands,
    "jobs": jobs.PROGRAM.commands,
    "flows": flows.PROGRAM.commands,
    "workers": workers.PROGRAM.commands,
    "schedules": schedules.PROGRAM.commands,
    "nodes": nodes.PROGRAM.commands,
}
PAGE = (HOME / "docs" / "operating.md").read_text()
ALL = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())


@ALL
def test_each_operation_is_a_subcommand_with_its_arguments(operation: Operation) -> None:
    command = COMMANDS[operation.family][operation.name]
    assert isinstance(command, Command)

    taken = [name for name, _ in options_of(command.record)]
    assert {each.name for each in operation.arguments} <= set(taken)
    assert command.about == operation.about


@ALL
async def test_each_operation_is_a_method_of_the_admin(operation: Operation) -> None:
    async with Client("disque://127.0.0.1:1") as client:
        family = getattr(Admin(client), operation.family)

        method = getattr(family, operation.name)

        with pytest.raises(TypeError, match=f"{operation.key} takes {operation.arguments[0].name}"):
            await method(nothing=1)


@ALL
def test_each_operation_has_a_row_in_the_manual(operation: Operation) -> None:
    section = PAGE.partition(f"\n## {operation.family.title()}\n")[2].partition("\n## ")[0]

    assert re.search(rf"^\| `{operation.key}[ `]", section, re.MULTILINE)


@ALL
def test_each_operation_is_told_to_the_browser(operation: Operation) -> None:
    told = operation.as_json()

    assert (told["key"], told["letter"], told["label"]) == (
        operation.key,
        operation.letter,
        operation.label,
    )
    assert [each["name"] for each in told["arguments"]] == [
        each.name for each in operation.arguments
    ]


def test_no_two_operations_of_a_family_have_the_same_key_of_the_console() -> None:
    keys = [(each.family, each.letter) for each in OPERATIONS.values()]

    assert len(keys) == len(set(keys))


def test_the_operations_of_a_family_stand_together() -> None:
    families = [family for family, _ in groupby(each.family for each in OPERATIONS.values())]

    assert families == list(COMMANDS)


async def test_what_is_no_operation_is_no_method() -> None:
    async with Client("disque://127.0.0.1:1") as client:
        with pytest.raises(AttributeError, match="Queues has no 'explode'"):
            Admin(client).queues.explode  # noqa: B018


@pytest.mark.parametrize(
    ("key", "args", "why"),
    [
        ("queues pause", {"queue": "q", "side": "half"}, "side 'half' is not one of all, out, in"),
        ("queues redrive", {"queue": "q", "rate": 0}, "'rate' is not a number above 0"),
        ("queues redrive", {"queue": "q", "rate": float("nan")}, "'rate' is not a number above 0"),
        ("queues redrive", {"queue": "q", "rate": 1e999}, "'rate' is not a number from 1 to"),
        ("workers quiet", {"worker": "w", "timeout": 10**400}, "'timeout' is not a number from 1"),
        ("queues redrive", {"queue": "q", "limit": 1.5}, "'limit' is not a number from 1"),
        ("queues redrive", {"queue": "q", "reason": 7}, "'reason' is not a text"),
        ("queues drop", {}, "name a queue, or a text of the reason"),
        ("queues purge", {}, "'queue' is missing"),
        ("nodes meet", {"address": "h:99999"}, "'h:99999' is not host:port"),
        ("nodes meet", {"address": "h:x"}, "'h:x' is not host:port"),
    ],
)
async def test_arguments_that_cannot_be_are_refused(
    key: str, args: dict[str, object], why: str
) -> None:
    async with Client("disque://127.0.0.1:1") as client:
        with pytest.raises(MistakeError, match=why):
            await OPERATIONS[key].planned(client, args)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({}, "'newest' is missing"),
        ({"newest": "x"}, "'newest' is not a number from 0"),
        ({"newest": -1}, "'newest' is not a number from 0"),
    ],
)
async def test_a_number_that_is_required_is_checked_before_the_plan(
    args: dict[str, object], why: str
) -> None:
    async def plan(_client: Client, _args: object) -> Plan:
        await anyio.lowlevel.checkpoint()
        raise AssertionError

    newest = Argument(name="newest", about="so many", kind="number", least=0, is_required=True)
    trim = attrs.evolve(OPERATIONS["queues purge"], arguments=(newest,), plan=plan)
    async with Client("disque://127.0.0.1:1") as client:
        with pytest.raises(MistakeError, match=why):
            await trim.planned(client, args)
