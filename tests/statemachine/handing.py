"""Deliveries, and what they say of themselves."""

from typing import Final

from disque_trio.statemachine.base import Reply
from disque_trio.statemachine.client import Client
from tests.rig import CALM, JOB, ME, N2, N3, Rig, copy_of

RETRY: Final = 60_000


def take(rig: Rig, *options: str, client: Client | None = None) -> dict[bytes, Reply]:
    """GETJOB of one job; what it says of the delivery."""
    [[_, job_id, _, *meta]] = rig.ask(  # type: ignore[misc]
        "GETJOB", "NOHANG", *options, "FROM", "q", client=client
    )
    return {b"id": job_id, **dict(zip(meta[::2], meta[1::2], strict=True))}


def cluster() -> Rig:
    """A node that has a job of another one in its queue."""
    rig = Rig(peers=2, config=CALM)
    rig.hold(copy_of(holders=(N2, N3, ME)))
    rig.ask("ENQUEUE", JOB)
    return rig
