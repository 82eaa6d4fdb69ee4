"""QUEUE: set and show the limits of a queue, which apply to the whole cluster
(docs/commands.md)."""

from typing import Any, Final

from disque_trio.statemachine import keeping, limiting
from disque_trio.statemachine.base import (
    OK,
    SYNTAX_ERROR,
    CommandError,
    Reply,
    map_for,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commandoptions import LIMIT, usage
from disque_trio.statemachine.commands.parse import read_options
from disque_trio.statemachine.commands.usage import mistake
from disque_trio.statemachine.limit import Setting
from disque_trio.statemachine.state import NodeState

USAGE: Final = f"LIMIT queue NONE | LIMIT queue {usage(LIMIT)} | INFO queue"
_NO_LIMIT: Final = SYNTAX_ERROR + (
    b": QUEUE LIMIT needs CONCURRENCY, RATE, GROUP-CONCURRENCY, GROUP-RATE or NONE behind the queue"
)
_OF_GROUP: Final = {b"PER": b"GROUP-PER", b"BURST": b"GROUP-BURST"}
_NEEDS: Final = SYNTAX_ERROR + b": %b needs %b"


def queue(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """QUEUE LIMIT queue ... | INFO queue."""
    match [args[1].lower(), *args[2:]]:
        case [b"limit", name, *words] if words:
            limiting.set_limits(node, name, _setting(words))
            return OK
        case [b"limit", _]:
            raise CommandError(_NO_LIMIT)
        case [b"info", name]:
            return map_for(client.protocol, _described(node, name))
    text = b"ERR Unknown QUEUE subcommand or wrong number of arguments"
    raise CommandError(text + b": " + mistake("QUEUE", USAGE, args))


def _setting(words: list[bytes]) -> Setting:
    if [each.upper() for each in words] == [b"NONE"]:
        return Setting()
    options: dict[str, Any] = read_options(_resolved(words), b"QUEUE LIMIT", LIMIT)
    for option in LIMIT.values():
        if option.needs and option.name in options and LIMIT[option.needs].name not in options:
            raise CommandError(_NEEDS % (option.word, option.needs))
    if not options.keys() & {"concurrency", "rate", "group_concurrency", "group_rate"}:
        raise CommandError(_NO_LIMIT)
    if "rate" in options:
        options.setdefault("period", 1000)
    if "group_rate" in options:
        options.setdefault("group_period", 1000)
    return Setting(**options | {"is_loose": "is_loose" in options})


def _resolved(words: list[bytes]) -> list[bytes]:
    """Replace PER and BURST after GROUP-RATE with GROUP-PER and GROUP-BURST."""
    found: list[bytes] = []
    is_of_group = False
    for word in words:
        upper = word.upper()
        if upper in (b"RATE", b"GROUP-RATE"):
            is_of_group = upper == b"GROUP-RATE"
        found.append(_OF_GROUP.get(upper, word) if is_of_group else word)
    return found


def _described(node: NodeState, name: bytes) -> dict[bytes, Reply]:
    limit = node.limits.get(name)
    setting = Setting() if limit is None else limit.setting
    items: dict[bytes, Reply] = {
        b"name": name,
        b"concurrency": setting.concurrency,
        b"rate": setting.rate,
        b"period-ms": setting.period,
        b"burst": setting.burst,
        b"loose": int(setting.is_loose),
        b"set-at-ms": setting.epoch,
        b"group-concurrency": setting.group_concurrency,
        b"group-rate": setting.group_rate,
        b"group-period-ms": setting.group_period,
        b"group-burst": setting.group_burst,
    }
    if limit is None or not setting.is_set:
        return items
    queue = node.queues.get(name)
    return items | {
        b"keeper": limiting.keeper(node, limit),
        b"leased": node.leased.get(name, 0),
        b"may-deliver": limiting.allowed(node, limit),
        b"waits": int(queue is not None and limiting.waits(node, queue)),
        b"parts": keeping.parts(node, limit),
        b"unlimited-nodes": list(limiting.unlimited_nodes(node)),
        b"groups-in-use": sum([each == name for each, _ in node.group_limits]),
        b"groups-that-wait": 0 if queue is None else queue.parked_groups(),
    }
