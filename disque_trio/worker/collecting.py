"""The task of collectors: is a batch complete?"""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

import anyio
import attrs

from disque_trio import client as clients
from disque_trio.client import commands
from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError
from disque_trio.client.records import Job as Token
from disque_trio.worker import codec, steps
from disque_trio.worker.batches import COLLECT, SPARE_S
from disque_trio.worker.context import Job
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.envelope import BadBodyError
from disque_trio.worker.exceptions import Dead, Snooze
from disque_trio.worker.options import RESERVED, Definition, Options

TOKENS: Final = f"{RESERVED}batch."
_RETRY_S: Final = 60
"""A token that a collector has taken comes again so long after."""
_LOOK_S: Final = 2.0
"""How long it is waited for another token."""
_ROUND_S: Final = 20.0
_AT_ONCE: Final = 100
_LONGEST_PAUSE_S: Final = 15
_SHOWN: Final = 20

_log: Final = logging.getLogger("disque_trio.worker.batches")


def definition() -> Definition:
    """How collectors are run."""
    return Definition(name=COLLECT, is_bound=True)


def collector(
    enqueuer: Enqueuer, now: Callable[[], float]
) -> Callable[..., Coroutine[Any, Any, None]]:
    """The function of the task. `now` is Unix time."""

    async def collect(
        job: Job[Any],
        batch: str,
        size: int,
        then: dict[str, Any],
        headers: dict[str, Any],
        until: float,
    ) -> None:
        client = enqueuer.client
        tokens, seen = await _taken(client, TOKENS + batch, size)
        if len(seen) == size:
            await enqueuer.add(_last(enqueuer, then, headers))
            if tokens:
                await client.ackjob(*tokens)
            return
        if not tokens and await _was_added(client, then):
            return  # by a collector that was delivered twice
        await _merge(client, TOKENS + batch, tokens, seen, until - now())
        if now() > until:
            missing = [each for each in range(size) if each not in seen]
            shown = ", ".join(map(str, missing[:_SHOWN]))
            raise Dead(f"batch {batch}: {len(missing)} of {size} members are not done: {shown}")
        raise Snooze(min(2**job.snoozes, _LONGEST_PAUSE_S))

    return collect


def token(headers: Mapping[str, Any]) -> Command[str] | None:
    """The ADDJOB of the token of a member with these headers; None if it is none."""
    match headers.get("batch"):
        case {"id": str(batch), "n": int(n), "ttl": int(ttl)}:
            return _add(TOKENS + batch, [n], ttl)
    return None


def _add(queue: str, seen: Sequence[int], ttl: int) -> Command[str]:
    body = codec.write({"done": seen}, "json")
    command = commands.addjob(queue, body, retry=_RETRY_S, ttl=max(ttl, 2 * _RETRY_S))
    return attrs.evolve(command, is_repeatable=True)


async def _taken(
    client: "clients.Client", queue: str, size: int
) -> tuple[list[Token], dict[int, None]]:
    """Tokens, and the members that they stand for, until there are all or no more come."""
    tokens: list[Token] = []
    seen: dict[int, None] = {}
    ends = anyio.current_time() + _ROUND_S
    while len(seen) < size and anyio.current_time() < ends:
        found = await client.getjob(queue, count=_AT_ONCE, timeout=_LOOK_S)
        if not found:
            break
        tokens += found
        for each in found:
            seen |= dict.fromkeys(n for n in _members(each) if n < size)
    return tokens, seen


def _members(token: Token) -> list[int]:
    try:
        match codec.read_plain(token.body, "json"):
            case {"done": [*numbers]}:
                return [n for n in numbers if isinstance(n, int) and n >= 0]
    except codec.BAD_INPUT as error:
        _log.warning("%s is no token of a batch: %s", token.id, error)
    return []


async def _merge(
    client: "clients.Client", queue: str, tokens: list[Token], seen: dict[int, None], left: float
) -> None:
    if len(tokens) > 1:
        await client.run(_add(queue, sorted(seen), int(left) + SPARE_S))
        await client.ackjob(*tokens)
    elif tokens:
        await client.release(*tokens)


async def _was_added(client: "clients.Client", then: dict[str, Any]) -> bool:
    try:
        step = codec.read_step(then)
        queue = step.options.get("queue", Options().queue)
        return await client.show_key(queue, steps.key_of(step)) is not None
    except (*codec.BAD_INPUT, DisqueError):
        return False  # a node of the original, for example


def _last(enqueuer: Enqueuer, then: dict[str, Any], headers: dict[str, Any]) -> Any:
    try:
        step = codec.read_step(then)
        options = Options(**step.options)
    except codec.BAD_INPUT as error:
        raise BadBodyError(f"unreadable: what follows the batch: {error}") from error
    return steps.request(enqueuer, step, options, [], headers)
