"""`disque-trio flows`: graphs of jobs (docs/worker-flows.md)."""

from collections.abc import Sequence
from typing import Any, Final

import attrs

from disque_trio.cli.frame import JOB_ID, NotDoneError, duration, run
from disque_trio.cli.operating.frame import (
    EPILOG,
    Options,
    client_of,
    operation,
    operations,
    warn_of,
)
from disque_trio.observe.observer import Observer
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import Family, argument
from disque_trio.terminal.output import complain, say_facts, say_json, say_table
from disque_trio.worker.operating.admin import Admin
from disque_trio.worker.runtime import runtime

NAME: Final = "flows"
_HEADS: Final = ("ID", "STATE", "QUEUE", "ADDED", "MEMBERS")
_MEMBER_HEADS: Final = ("N", "TASK", "STATE", "ID", "WORKER", "ERROR")


@attrs.frozen(kw_only=True)
class Show(Options):
    """`flows show`."""

    id: str = argument(JOB_ID, "id of the flow")


def main(argv: Sequence[str]) -> int:
    """Run a command. Return the exit status, as described in `--help`."""
    return run(NAME, PROGRAM, argv)


async def _ask(options: Options, topic: str, **args: str) -> tuple[dict[str, Any], int]:
    """As the console has it; and the exit status."""
    async with client_of(options.url) as client:
        data, unreached = await Observer(client).answer(topic, dict(args))
        status = await warn_of(client, NAME, unreached)
    return data, status


async def _list(_admin: Admin, options: Options) -> int:
    found, status = await _ask(options, "flows")
    if options.is_json:
        say_json(found["flows"])
    else:
        say_table(_HEADS, [_row(each) for each in found["flows"]])
    if found["unread"]:
        unread = counted(found["unread"], "flow is", "flows are")
        complain(f"disque-trio {NAME}: {unread} not listed: codecs of its app have encoded it")
    if found["is_cut"]:
        complain(f"disque-trio {NAME}: the list may be incomplete")
    return status


def _row(flow: dict[str, Any]) -> list[object]:
    age = duration(max(runtime().now() - flow["added_ms"] / 1000, 0))
    return [flow["id"], flow["state"] or "?", flow["queue"], age, _members(flow)]


def _members(flow: dict[str, Any]) -> str:
    """Such as `12 done, 1 dead`."""
    counts = (flow["counts"] or {"in all": flow["size"]}).items()
    return ", ".join(f"{count} {state}" for state, count in counts)


async def _show(_admin: Admin, options: Show) -> int:
    flow, status = await _ask(options, "flow", id=options.id)
    if not flow["found"]:
        raise NotDoneError(f"{options.id}: {flow['why']}")
    if options.is_json:
        say_json(flow)
        return status
    heads = (each.lower() for each in _HEADS)
    say_facts(zip(heads, _row(flow), strict=True))
    say_table(_MEMBER_HEADS, [_member(*each) for each in enumerate(flow["members"])])
    return status


def _member(number: int, member: dict[str, Any]) -> list[object]:
    error = member.get("error") or {}
    words = ": ".join(filter(None, (error.get("kind"), error.get("message"))))
    worker = member.get("worker") or "-"
    return [number, member["task"], member["state"], member["id"] or "-", worker, words or "-"]


PROGRAM: Final = Family(
    about="List flows, show the members of one, and cancel or retry it.",
    epilog=EPILOG,
    commands={
        "list": operation("List the flows that have not ended.", _list, Options),
        "show": operation("Show a flow and its members.", _show, Show),
        **operations(NAME),
    },
)
