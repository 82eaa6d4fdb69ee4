"""Log lines about a worker itself, on the logger `disque_trio.worker`."""

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from disque_trio.client.errors import ConnectionFailedError
from disque_trio.client.refusals import URL_WITH_PASSWORD, WRONG_PASSWORD
from disque_trio.terminal.counting import counted
from disque_trio.worker.engine.records import Drop, Job, Micros, Reason, Stage, Start
from disque_trio.worker.protocol import Run
from disque_trio.worker.repeats import write_with_traceback
from disque_trio.worker.slots import Slot
from disque_trio.worker.stalls import Seen

_LOUD: Final = (
    Reason.LEASE_OVER, Reason.REFUSED, Reason.UNKNOWN, Reason.NOT_KEPT, Reason.RESULT_REFUSED,
)  # fmt: skip
_BLOCKED: Final = (
    "the event loop was blocked for %.1f s%s%s. Declare blocking tasks as `def`, which run in a "
    "thread, or with executor=, or await a thread"
)
log: Final = logging.getLogger("disque_trio.worker")


def takes_jobs(queues: Sequence[bytes], node: str) -> None:
    """A node has accepted the worker."""
    names = b", ".join(queues).decode(errors="replace")
    log.info("takes jobs of %s from %s", names, node)


def refused(node: str, error: str, *, has_password: bool) -> None:
    """A node rejects this worker."""
    advice = ""
    if error.startswith(("NOAUTH", "WRONGPASS")):
        advice = f". {WRONG_PASSWORD if has_password else URL_WITH_PASSWORD}"
    log.error("%s refuses this worker: %s%s", node, error.rstrip("."), advice)


def lost(error: ConnectionFailedError) -> None:
    """A node cannot be reached."""
    log.warning("%s", error)


def dropped(drop: Drop, run: Run | None) -> None:
    """A delivery ends without a run, or an outcome was accepted by no node."""
    level = logging.WARNING if drop.why in _LOUD else logging.DEBUG
    if run is None:
        log.log(level, "%s: %s", drop.id.decode(errors="replace"), drop.why.value)
    else:
        log.log(level, "%s", drop.why.value, extra=_about(run))


def failed(start: Start, error: BaseException) -> None:
    """A handler has raised an error, which is a bug of this library."""
    text = "the handler of %s raised an error without reporting an outcome"
    id = start.id.decode(errors="replace")
    write_with_traceback(log, logging.ERROR, text, (id,), error)


def interrupted(run: Run) -> None:
    """The worker stops, and has cancelled the run."""
    log.warning("interrupted, because the worker stops; the job is redelivered", extra=_about(run))


def stuck(run: Run, where: str) -> None:
    """A handler does not end although it was cancelled."""
    log.error("its handler does not end after its cancellation:\n%s", where, extra=_about(run))


def leaves(slots: Iterable[Slot]) -> None:
    """The process is about to exit while these handlers run."""
    runs = [slot.run for slot in slots if slot.run is not None]
    names = ", ".join(f"{run.task or 'a job'} {run.start.id.decode()}" for run in runs)
    abandoned = counted(len(runs), "handler does not end, and is", "handlers do not end, and are")
    log.error("%s abandoned: %s", abandoned, names)


def stalled(
    seconds: float, seen: Seen | None, slots: Iterable[Slot], jobs: Iterable[Job], now: Micros
) -> None:
    """The event loop was blocked for `seconds`."""
    running = (each for each in jobs if each.stage is Stage.RUNNING)
    lost = {each.id for each in running if each.lost is not None or each.end <= now}
    extra = None
    if seen is not None and seen.job:
        extra = {"task": seen.task, "job": seen.job.decode(errors="replace")}
        if seen.lease_ends <= now:
            lost.add(seen.job)
    at = f", at {seen.where}" if seen is not None else f", while {_running(slots)} ran"
    leases = counted(len(lost), "lease")
    over = f"; {leases} ended meanwhile, so the jobs run again" if lost else ""
    log.warning(_BLOCKED, seconds, at, over, extra=extra)


def _running(slots: Iterable[Slot]) -> str:
    runs = [slot.run for slot in slots if slot.run is not None and slot.run.thread is None]
    return ", ".join(sorted({run.task for run in runs if run.task})) or "no job"


def _about(run: Run) -> dict[str, str]:
    return {"task": run.task, "job": run.start.id.decode(errors="replace")}
