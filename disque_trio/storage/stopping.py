"""Writes a node's queues to the journal before it stops, so that the next start restores them."""

from typing import Final

from disque_trio.ports import Log
from disque_trio.statemachine.machine import Machine
from disque_trio.storage.journal import Journal
from disque_trio.storage.tasks import Scope

QUEUES_S: Final = 20.0
"""How long a stopping node continues to serve while its queues are written."""


async def write_queues(machine: Machine, journal: Journal) -> str | None:
    """Rewrite the journal with the queues, and record changes to them from now on. Returns an error
    text if that fails, in which case recording is as before; otherwise None."""
    if journal.end.trouble:
        return journal.end.trouble
    await journal.rewriter.cancel()
    was_recording = machine.state.is_recording
    machine.record(on=True)
    machine.record_queues(on=True)
    error = await journal.rewriter.write_whole()
    if error is not None:
        machine.record_queues(on=False)
        machine.record(on=was_recording)
    return error


async def keep_queues(machine: Machine, journal: Journal, hurry: Scope, log: Log) -> bool:
    """Write the queues for the next start, unless that takes longer than `QUEUES_S` or `hurry` is
    cancelled. Returns whether the journal has them."""
    if not machine.state.config.appendonly:
        return False
    error: str | None = "writing took too long, or a second signal arrived"
    with hurry, journal.tasks.move_on_after(QUEUES_S):
        error = await write_queues(machine, journal)
    if error is not None:
        journal.rewriter.give_up()
        log.warning(
            "the queues are not in the journal: after the next start their jobs wait for RETRY",
            error=error,
        )
    return error is None
