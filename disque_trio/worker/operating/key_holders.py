"""Finds the jobs with certain keys, by asking each node for its own knowledge.

While a node is lost and not yet suspected, SHOW KEY at other nodes waits for it, and fails after
five seconds. With LOCAL no node waits for another, so jobs on live nodes are found immediately.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import anyio

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.nodes import NoNodeError
from disque_trio.client.records import KeyHolder
from disque_trio.worker.operating.asking import Asking, InSteps, at_each, unwrap
from disque_trio.worker.options import Place

PATIENCE_S: Final = 5.0
"""How long to wait for a node that does not answer."""
_ENDED: Final = "done-kept"
_STATES: Final = ("waiting", "backing-off", "with-worker", "queued", "dead", _ENDED)
"""If nodes report several states of one job, the last of these applies, as in SHOW KEY."""


async def key_holders(client: Asking, places: Sequence[Place]) -> list[KeyHolder | None]:
    """The jobs with these keys, as far as nodes answer. Raises `NoNodeError` if none does."""
    asked = [commands.show_key(*place, is_local=True) for place in places]

    async def ask(node: Address) -> list[list[KeyHolder | None]]:
        if isinstance(client, InSteps):
            return [[unwrap(each) for each in await client.ask(node, asked)]]
        with anyio.move_on_after(PATIENCE_S):
            return [[unwrap(each) for each in await client.ask(node, asked)]]
        return []

    answers = (await at_each(client, ask)).items
    if places and not answers:  # the nodes found before have failed since
        raise NoNodeError("no node reports which jobs have the keys")
    return [_joined(each[place] for each in answers) for place in range(len(places))]


async def key_holder(client: Asking, place: Place) -> KeyHolder | None:
    """The job with this key (`key_holders`)."""
    (found,) = await key_holders(client, [place])
    return found


async def is_held(client: Asking, place: Place) -> bool:
    """Does any node have a job with this key? The first positive answer suffices, so a node that
    does not answer delays only a negative result. Raises `NoNodeError` if no node answers."""
    if isinstance(client, InSteps):
        return await key_holder(client, place) is not None
    is_found = False
    with anyio.CancelScope() as others:

        async def ask(node: Address) -> list[bool]:
            nonlocal is_found
            with anyio.move_on_after(PATIENCE_S):
                [reply] = await client.ask(node, [commands.show_key(*place, is_local=True)])
                if unwrap(reply) is not None:
                    is_found = True
                    others.cancel()
                return [True]
            return []

        if not (await at_each(client, ask)).items:
            raise NoNodeError("no node reports which job has the key")
    return is_found


def _joined(holders: Iterable[KeyHolder | None]) -> KeyHolder | None:
    """The job with the key; if there are several, one that has not ended."""
    by_id: dict[str, list[KeyHolder]] = {}
    for each in holders:
        if each is not None:
            by_id.setdefault(each.id, []).append(each)
    found = [_of_one(some) for some in by_id.values()]
    return next((each for each in found if each.state != _ENDED), found[0] if found else None)


def _of_one(answers: Sequence[KeyHolder]) -> KeyHolder:
    return KeyHolder(
        id=answers[0].id,
        state=max((each.state for each in answers), key=_STATES.index),
        nodes=tuple(dict.fromkeys(node for each in answers for node in each.nodes)),
        queued_at=tuple(dict.fromkeys(node for each in answers for node in each.queued_at)),
    )
