"""Notes that the library keeps for a job: its last checkpoint, and its last trial.

A note is the body of another job, whose key is the id of the first. That job is delayed for all of
its life, so nodes never enqueue it. A new note replaces it, and every replica can be read.
"""

from typing import Final, Literal

from disque_trio.client import commands
from disque_trio.worker import deciding
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.operating.jobs import Jobs
from disque_trio.worker.operating.key_holders import key_holder
from disque_trio.worker.options import NOTES
from disque_trio.worker.precedence import TTL_S
from disque_trio.worker.protocol import Run

_SPARE_S: Final = 60


def life_of(run: Run) -> int:
    """How long a note is kept, in seconds: as long as the job lives, because a dead job may be
    redriven."""
    left = deciding.left_s(run)
    return max(_SPARE_S, round(left)) if left < TTL_S else TTL_S


async def find(enqueuer: Enqueuer, key: str) -> bytes | None:
    """The note with this key; None if there is none. Raises `DisqueError`."""
    holder = await key_holder(enqueuer.client, (NOTES, key))
    if holder is None:
        return None
    copies = (await Jobs(enqueuer.client).find(holder.id)).items
    return next((each.job.body for each in copies if each.job.body is not None), None)


async def keep(
    enqueuer: Enqueuer,
    key: str,
    body: bytes,
    *,
    seconds: int,
    replicate: int | None,
    sync: int | Literal["auto"],
) -> str:
    """Keep this note instead of an earlier one. Returns the id of its job. Raises `DisqueError`."""
    return await enqueuer.client.run(
        commands.addjob(
            NOTES,
            body,
            delay=seconds,
            ttl=seconds + _SPARE_S,
            unique=key,
            if_exists="replace",
            replicate=replicate,
            sync=sync,
        )
    )
