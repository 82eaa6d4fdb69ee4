"""What a node writes down before it stops, so that its queues are whole when it starts again."""

from typing import Final

import trio

from disque_trio.ports import Log
from disque_trio.statemachine.machine import Machine
from disque_trio.storage.journal import Journal

QUEUES_S: Final = 20.0
"""How long a stopping node goes on serving while its queues are written down."""


async def write_queues(machine: Machine, journal: Journal) -> str | None:
    """Write the journal anew, and in it what is queued, also of what happens from now on until the
    end. An error text if that fails: then no more is recorded than before."""
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


async def keep_queues(
    machine: Machine, journal: Journal, hurry: trio.CancelScope, log: Log
) -> bool:
    """Let the next start find the queues as they are at the end, if that can be had in good time,
    and before somebody cancels `hurry`. Does it?"""
    if not machine.state.config.appendonly:
        return False
    error: str | None = "it took too long, or the node was told again to end"
    with hurry, trio.move_on_after(QUEUES_S):
        error = await write_queues(machine, journal)
    if error is not None:
        journal.rewriter.give_up()
        log.warning(
            "the queues are not in the journal: after the next start their jobs wait for RETRY",
            error=error,
        )
    return error is None
