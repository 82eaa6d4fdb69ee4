"""Disks (S15): everything that a journal must keep is restored after a crash.

A copy is confirmed once its node has replied to the producer, or with GOTJOB to the node that sent
it. An acknowledgement, or the deletion of a copy, is confirmed by the reply to the client, or by
SETACK, GOTACK or DELJOB to another node; a death or redrive by a reply to a client or by JOBSTATE
to another node. After a kill all confirmed changes must be on disk, and no job that has ended may
be pending there. Unconfirmed changes may have waited for the previous write and sync and for their
own write (`Obligations.write`), which with `always` is followed by a sync. After a power failure
confirmed changes must be on disk with `appendfsync always`, and with `everysec` if the process ran
for two more seconds, or loaded the file again, and the disk had no error. A change that must be on
disk does not excuse a duplicate (D8).
"""

from typing import Final

import attrs

from disque_trio.sim.checkers import history
from disque_trio.sim.checkers.case import LAG, Case
from disque_trio.sim.checkers.intervals import Interval, begin_without
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import ALIVE, NEVER, Copy, Job, Lease
from disque_trio.sim.checkers.safety import after_leaving, check_retention
from disque_trio.tracing.details import numbers
from disque_trio.tracing.rows import Row

TROUBLES: Final[tuple[str, ...]] = ("disk.full", "disk.error", "disk.stall")


def on_add_ok(_case: Case, row: Row, job: Job) -> None:
    """The reply to the producer confirms the copy of its node."""
    _confirm(job.copies.get(row.node), row)


def after_gotjob(case: Case, row: Row) -> None:
    """GOTJOB confirms the copy to another node."""
    _confirm(case.job(row.job).copies.get(row.node), row)


def _confirm(copy: Copy | None, row: Row) -> None:
    if copy is not None and copy.confirmed_at == NEVER:
        copy.confirmed_at = row.time


def on_ack_ok(_case: Case, row: Row, job: Job) -> None:
    """A reply to a client confirms that the job is acknowledged at the node, or gone."""
    _confirm_end(job, row)


def on_deliver(_case: Case, row: Row, job: Job) -> None:
    """A client received the job: if its RETRY is 0, it has ended at its node."""
    if not job.is_at_least_once:
        job.end_reported.setdefault(row.node, row.time)


def after_jobstate(case: Case, row: Row) -> None:
    """JOBSTATE confirms to another node that the job is dead at the sender, or was redriven."""
    case.reported_states[row.node, row.job] = row.time


def on_given_back_ok(case: Case, row: Row, job: Job) -> None:
    """The reply to a NACK or RELEASE confirms it; the request may have made the job dead."""
    copy = job.copies.get(row.node)
    if copy is not None and copy.state[1]:
        case.reported_states[row.node, job.id] = row.time


def after_setack(case: Case, row: Row) -> None:
    """SETACK, GOTACK and DELJOB confirm to another node that the job has ended at the sender."""
    _confirm_end(case.jobs.get(row.job) or case.job(row.job), row)


def _confirm_end(job: Job, row: Row) -> None:
    copy = job.copies.get(row.node)
    if copy is None:
        job.end_reported.setdefault(row.node, row.time)
    elif copy.is_acked:
        job.end_reported.setdefault(row.node, row.time)
        if copy.ack_confirmed_at == NEVER:
            copy.ack_confirmed_at = row.time


def on_start(case: Case, row: Row) -> None:
    """A node with a journal loads it, or reports that it is damaged."""
    if case.obligations.has_disk and row.cause == "empty":
        case.unread[row.node] = None


def on_trouble(case: Case, row: Row) -> None:
    """A fault of a disk begins or ends."""
    case.mark(row.kind)
    # Replies and messages of a node wait for its disk, so it appears slow to other nodes.
    case.world.on_slow(attrs.evolve(row, peer=row.kind, detail="0" if row.detail == "no" else "1"))
    mutes = case.world.mutes.setdefault(row.node, [])
    if row.detail == "yes":
        mutes.append(Interval(row.time))
    else:
        for mute in mutes:
            mute.end = mute.end or row.time
    case.world.disks[row.node, row.kind] = None if row.detail == "yes" else row.time


def on_crash(case: Case, row: Row) -> None:
    """Count deliveries whose reply never left the node: a reply waits for the write, and with
    `always` for the sync, and a crash may lose the record that it waits for (S5)."""
    if not case.obligations.has_disk or (
        row.cause == "power" and case.obligations.fsync != "always"
    ):
        return
    for job_id in case.table(row.node):
        job = case.jobs[job_id]
        if not job.is_at_least_once and job.open_serves:
            job.unsent_serves += sum(
                serve.node == row.node and _was_unsent(case, row, serve)
                for serve in job.open_serves
            )


def _was_unsent(case: Case, row: Row, serve: Lease) -> bool:
    return case.may_be_unwritten(row, serve.time)


def on_flip(case: Case, row: Row) -> None:
    """A bit of a journal has changed."""
    case.mark("disk.flip")
    case.flipped[row.node] = None


def before_hold(case: Case, row: Row, job: Job) -> None:
    """A copy from disk keeps its earlier confirmations. Any other copy is new and has none."""
    if row.cause == "loaded":
        case.mark("copy.loaded" if job.copies.get(row.node) else "copy.resurrected")
        before = job.copies.get(row.node)
        was_lost = before is not None and before.is_late
        if before is None and not case.may_be_forgotten(row.node, job.not_held.get(row.node)):
            job.drop_on_disk[row.node] = None
        elif not was_lost:
            job.drop_on_disk.pop(row.node, None)
        job.unlisted[row.node] = [
            holder
            for holder, at in job.listed.get(row.node, {}).items()
            if case.may_be_forgotten(row.node, at)
        ]
    else:
        job.end_reported.pop(row.node, None)
        if row.node in case.unread and not case.is_live:
            case.violate("S15", "has started without its journal", node=row.node)


def after_hold(case: Case, row: Row, job: Job) -> None:
    """Record the receivers of the job's transfers as listed by the loaded record, unless the
    journal may have lost the transfer."""
    if row.cause != "loaded" or not job.is_at_least_once or row.node in case.flipped:
        return
    for (giver, receiver), at in list(job.transfers.items()):
        if giver != row.node:
            continue
        if case.may_be_forgotten(giver, at):
            # The transfer stays lost, whatever later crashes do.
            del job.transfers[giver, receiver]
        else:
            job.listed.setdefault(giver, {})[receiver] = at


def on_loaded(case: Case, row: Row) -> None:
    """The journal is loaded: copies that were not restored are lost."""
    case.world.loading.pop(row.node, None)
    case.unread.pop(row.node, None)
    if row.cause != "kept":
        case.mark(f"journal.{row.cause}")
    for job_id in list(case.table(row.node)):
        job = case.jobs[job_id]
        copy = job.copies[row.node]
        if copy.is_offline:
            _judge_loss(case, row, job, copy)
            if not _is_over(case, job):
                history.destroy(case, job, copy)
            else:
                history.forget(case, job, copy)
            after_leaving(case, job)
            check_retention(case, job)
        else:
            if copy.before is not None:
                _judge_ack(case, row, job, copy, copy.before)
                _judge_state(case, row, job, copy, copy.before)
                copy.before = None
            _judge_return(case, row, job, copy)
    case.loaded_at[row.node] = row.time


def _is_over(case: Case, job: Job) -> bool:
    """Did the job expire before the node had restarted?"""
    return job.options is not None and job.created_at is not None and case.has_expired(job)


def _judge_loss(case: Case, row: Row, job: Job, copy: Copy) -> None:
    """S15: a confirmed copy, or a confirmed acknowledgement, is lost."""
    confirmed_at = copy.ack_confirmed_at if copy.is_acked else copy.confirmed_at
    if confirmed_at == NEVER or not _should_return(case, row, job, copy):
        return
    case.check("S15")
    if row.cause != "damaged" and must_survive(case, row.node, confirmed_at):
        crash = case.world.crashes[row.node]
        what = "confirmed its acknowledgement" if copy.is_acked else "promised it"
        case.violate(
            "S15",
            f"{row.node} had {what} {(crash.time - confirmed_at) / SECOND:.3f} s before "
            f"the crash ({crash.cause}), and has not got it back",
            job.id,
            row.node,
        )


def _should_return(case: Case, row: Row, job: Job, copy: Copy) -> bool:
    """Must the journal restore the copy? It deletes a copy that has expired, or was served with
    RETRY 0. The original's format also deletes acknowledged jobs."""
    if copy.is_acked and case.obligations.has_original_file:
        return False
    if copy.is_dummy:
        life = 0 if copy.base is None else (copy.base - copy.mono) * MILLI
        return case.now - copy.since < case.obligations.shortest(life) - SECOND
    was_handed_out = not job.is_at_least_once and job.serves > 0 and not copy.is_acked
    is_over = (
        _is_over(case, job) or _is_over_by_wall(row, job, copy) or _is_over_here(case, row, copy)
    )
    return not (was_handed_out or is_over)


def _is_over_by_wall(row: Row, job: Job, copy: Copy) -> bool:
    """Is the job's TTL over by the wall clock of the node, which may have been set forward? The
    creation stamps of a node never decrease, but its clock may."""
    made = numbers(job.first_record).get("made")
    if made is None:
        return False
    # The options of a job are unknown if no node replied to its ADDJOB.
    ttl = job.life if job.options is None else job.options.ttl // MILLI
    until = made // 1_000_000 + ttl
    if copy.wall_until is not None:
        until = min(until, copy.wall_until)
    return row.wall >= until - 1000


def _is_over_here(case: Case, row: Row, copy: Copy) -> bool:
    """Is the remaining life of a dead or redriven job over by the node's own record, maybe because
    its wall clock was set forward? Another node may have redriven the job in the meantime."""
    if copy.left_since == NEVER:
        return False
    until = copy.left_since + case.obligations.shortest(copy.left * MILLI) - SECOND
    return case.now >= until or row.wall >= copy.left_wall + copy.left - 1000


def _judge_state(case: Case, row: Row, job: Job, copy: Copy, before: Copy) -> None:
    """S15: a job that was dead, or redriven, is restored in that state."""
    if before.state == ALIVE or copy.is_acked:
        return
    case.check("S15")
    reported_at = case.reported_states.pop((row.node, job.id), NEVER)
    if reported_at >= before.left_since != NEVER:
        may_be_lost = not must_survive(case, row.node, reported_at)
    else:
        may_be_lost = case.may_be_forgotten(row.node, before.left_since)
    if copy.state < before.state and not may_be_lost:
        detail = f"{row.node} had it as {before.state} (redriven, dead), and now as {copy.state}"
        case.violate("S15", detail, job.id, row.node)


def _judge_return(case: Case, row: Row, job: Job, copy: Copy) -> None:
    """S15: a job is not pending at a node that had confirmed its end."""
    ended_at = job.end_reported.get(row.node)
    if ended_at is None or copy.is_acked or copy.is_dummy:
        return
    if copy.state != ALIVE and not job.is_at_least_once:
        # It was delivered, became dead, and may have been redriven.
        return
    del job.end_reported[row.node]
    case.check("S15")
    if must_survive(case, row.node, ended_at):
        crash = case.world.crashes[row.node]
        case.violate(
            "S15",
            f"{row.node} had said that it is over {(crash.time - ended_at) / SECOND:.3f} s before "
            f"the crash ({crash.cause}), and has it back as pending",
            job.id,
            row.node,
        )


def _judge_ack(case: Case, row: Row, job: Job, copy: Copy, before: Copy) -> None:
    """S15: a copy that was acknowledged is loaded as acknowledged."""
    if not before.is_acked or copy.is_acked:
        return
    job.acks_crashed += 1
    case.mark("ack.destroyed")
    if before.ack_confirmed_at == NEVER:
        return
    case.check("S15")
    if must_survive(case, row.node, before.ack_confirmed_at):
        crash = case.world.crashes[row.node]
        case.violate(
            "S15",
            f"{row.node} had confirmed its acknowledgement "
            f"{(crash.time - before.ack_confirmed_at) / SECOND:.3f} s before the crash "
            f"({crash.cause}), and has forgotten it",
            job.id,
            row.node,
        )


def must_survive(case: Case, node: str, confirmed_at: int) -> bool:
    """Must a change that the node confirmed at this time survive its last crash?"""
    crash = case.world.crashes[node]
    if crash.cause != "power" or case.obligations.fsync == "always":
        return True
    if case.obligations.fsync != "everysec" or case.world.was_disk_faulty(node, crash.time):
        return False
    stops = [pause for pause in case.world.pauses.get(node, ()) if not pause.is_slow]
    if confirmed_at < begin_without(stops, LAG, crash.time):
        return True
    return confirmed_at <= case.loaded_at.get(node, NEVER) < crash.time
