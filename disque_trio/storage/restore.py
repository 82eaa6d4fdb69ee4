"""Restores a node's jobs from its journal, before the node connects to its peers."""

from disque_trio.ports import Clock, Host, JournalError, Log
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.records import Record
from disque_trio.storage.journal import Journal
from disque_trio.storage.spill import Spiller


async def restore(
    machine: Machine,
    journal: Journal,
    clock: Clock,
    host: Host,
    log: Log,
    spiller: Spiller | None = None,
) -> str:
    """Load the journal into the machine. Returns an error text; empty if there is none.

    Spills bodies for which there is no memory as soon as they have been read.
    """

    def take(records: list[Record]) -> None:
        now = clock.now()
        machine.load(records, now)
        if spiller is not None:
            spiller.settle(now)

    is_once = machine.state.config.aof_enqueue_jobs_once
    started = journal.tasks.time()
    try:
        await journal.load(take)
        while not machine.loaded(clock.now(), machine.state.knobs.loaded_per_turn):
            await journal.tasks.checkpoint()
        await journal.mend_format()
    except JournalError as error:
        return str(error)
    seconds = round(journal.tasks.time() - started, 3)
    state = machine.state
    log.notice(
        "journal loaded",
        jobs=len(state.jobs),
        expired_meanwhile=state.stats.expired_while_down,
        seconds=seconds,
    )
    if is_once and machine.state.facts.config_file:
        _turn_off_once(machine, host, log)
    return ""


def _turn_off_once(machine: Machine, host: Host, log: Log) -> None:
    """Turn off `aof-enqueue-jobs-once` in the configuration file, after it has had its effect."""
    error = host.rewrite_config(machine.state.config)
    if error is not None:
        log.warning(
            "cannot turn off aof-enqueue-jobs-once in the configuration file: set 'no' there "
            "before the next start",
            error=error,
        )
