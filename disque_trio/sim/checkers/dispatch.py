"""By kind of row: the functions that record or judge the row, in the order of their calls."""

from collections.abc import Callable
from typing import Final

from disque_trio.sim.checkers import (
    answers,
    backoffs,
    client_events,
    cluster_liveness,
    copy_options,
    custody,
    deadletters,
    duplicates,
    durability,
    errors,
    faults,
    giving_back,
    held,
    history,
    limits,
    meetings,
    messages,
    postponing,
    queries,
    refusals,
    repairs,
    replies,
    request_options,
    results,
    returns,
    runs,
    safety,
    silence,
    situations,
    snoozes,
    stops,
    succession,
    tables,
    timers,
    turns,
    unique,
    work,
    workers,
    zones,
)
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.records import Job
from disque_trio.sim.checkers.world import BLOCKS
from disque_trio.tracing.rows import Row


def _see_sent(case: Case, row: Row) -> None:
    """A node sent a message. Contents of gossip are not judged here, but unanswered PINGs are."""
    cause = row.cause
    if cause in cluster_liveness.GOSSIP:
        silence.on_send(case, row)
        work.on_gossip(case, row)
        return
    messages.on_send(case, row)
    work.on_sent(case, row)
    for check in _AFTER_SENDING.get(cause, ()):
        check(case, row)


def _see_received(case: Case, row: Row) -> None:
    """A node received a message."""
    if row.cause not in cluster_liveness.GOSSIP:
        messages.on_recv(case, row)
        work.on_received(case, row)
        for check in _AFTER_RECEIVING.get(row.cause, ()):
            check(case, row)
        return
    case.note_row("gossip")
    silence.on_receive(case, row)
    if case.due_again:
        stops.judge_overdue(case)
    if case.world.healed is not None:
        case.received_from[row.node, row.peer] = None
        if row.cause == "pong":
            returns.on_pong(case, row)


def _see_lost(case: Case, row: Row) -> None:
    """A message was lost."""
    if row.cause in cluster_liveness.GOSSIP:
        silence.on_lost(case, row)
    else:
        messages.on_lost(case, row)


_JobStep = Callable[[Case, Row, Job], None]
_Step = Callable[[Case, Row], None]


def _left(case: Case, _row: Row, job: Job) -> None:
    safety.after_leaving(case, job)


def _retained(case: Case, _row: Row, job: Job) -> None:
    safety.check_retention(case, job)


def _note_kind(case: Case, row: Row, _job: Job) -> None:
    case.note_row(row.kind)


def _forget(_case: Case, _row: Row, job: Job) -> None:
    duplicates.forget(job)


_GIVING: Final = ("nack", "enqueue", "release", "deljob", "dequeue")
OF_MESSAGES: Final[dict[str, _Step]] = {
    "send": _see_sent,
    "recv": _see_received,
    "lost": _see_lost,
}
OF_JOBS: Final[dict[str, tuple[_JobStep, ...]]] = {
    "hold": (
        _note_kind,
        custody.before_hold,
        safety.before_hold,
        durability.before_hold,
        history.on_hold,
        deadletters.after_hold,
        snoozes.after_hold,
        held.after_hold,
        durability.after_hold,
        copy_options.after_hold,
        timers.after_hold,
        safety.after_hold,
        refusals.after_hold,
        unique.after_hold,
        work.on_event,
    ),
    "drop": (
        situations.on_drop,
        replies.note,
        custody.before_drop,
        timers.before_end,
        history.on_drop,
        runs.on_leave,
        _left,
        work.on_event,
        _retained,
        deadletters.after_leaving,
        limits.on_end,
        work.on_event,
    ),
    "queue": (
        stops.before_queue,
        replies.note,
        custody.before_queue,
        safety.before_queue,
        postponing.before_queue,
        backoffs.before_queue,
        succession.before_queue,
        timers.before_queue,
        workers.before_queue,
        held.before_queue,
        deadletters.before_queue,
        history.on_queue,
        snoozes.after_queue,
        errors.on_taken_back,
        safety.after_queue,
        turns.after_queue,
        runs.on_queue,
        limits.on_end,
        work.note,
        work.on_event,
    ),
    "unqueue": (
        replies.note,
        history.on_unqueue,
        turns.on_leave,
        timers.after_unqueue,
        _left,
        work.on_event,
    ),
    "untie": (workers.on_untie,),
    "postpone": (
        replies.note,
        postponing.on_postpone,
        backoffs.on_postpone,
        request_options.note,
        deadletters.on_postpone,
        snoozes.on_postpone,
        held.on_postpone,
        errors.on_taken_back,
        limits.on_end,
        work.on_event,
    ),
    **dict.fromkeys(
        ("dead", "redrive"),
        (
            replies.note,
            request_options.note,
            deadletters.on_state,
            snoozes.on_state,
            errors.on_taken_back,
            runs.on_leave,
            timers.after_state,
            postponing.after_state,
            limits.on_end,
            work.on_event,
        ),
    ),
    "serve": (
        succession.before_serve,
        deadletters.on_serve,
        workers.on_serve,
        held.on_serve,
        history.on_serve,
        safety.on_serve,
        turns.on_taken,
        answers.on_serve,
        snoozes.on_serve,
        limits.on_serve,
        duplicates.on_serve,
        work.note,
        _forget,
        work.on_event,
    ),
    "give": (safety.on_give, history.on_give, turns.on_taken, snoozes.on_give, work.on_event),
    "acked": (
        situations.on_ack,
        replies.note,
        workers.before_ack,
        unique.before_ack,
        timers.before_end,
        history.on_acked,
        runs.on_leave,
        limits.on_end,
        _left,
    ),
    "add.ok": (
        custody.before_add_ok,
        safety.before_add_ok,
        client_events.on_add_ok,
        answers.on_add_ok,
        safety.after_add_ok,
        timers.after_add_ok,
        durability.on_add_ok,
        refusals.after_add_ok,
        zones.after_add_ok,
        runs.on_added,
    ),
    "ack.invoke": (
        replies.on_invoke,
        client_events.on_ack_invoke,
        runs.on_ack,
        results.on_ack_invoke,
    ),
    "ack.ok": (
        replies.on_end,
        client_events.on_ack_ok,
        durability.on_ack_ok,
        results.on_ack_ok,
    ),
    "ack.unknown": (replies.on_end, client_events.on_ack_unknown, results.on_ack_unknown),
    "fastack.invoke": (
        situations.on_fastack,
        _note_kind,
        replies.on_invoke,
        client_events.on_ack_invoke,
    ),
    "fastack.ok": (replies.on_end, client_events.on_ack_ok, durability.on_ack_ok),
    "fastack.unknown": (replies.on_end, client_events.on_ack_unknown),
    **dict.fromkeys(
        ("nack.invoke", "release.invoke", "enqueue.invoke"),
        (
            replies.on_invoke,
            client_events.on_requeue_invoke,
            request_options.on_invoke,
            runs.on_give_back,
            giving_back.on_give_back,
            workers.on_give_back,
            errors.on_nack,
        ),
    ),
    "begin.invoke": (held.on_begin,),
    "begin.ok": (held.on_begin_ok,),
    "run.begin": (runs.on_begin,),
    "run.cancel": (runs.on_cancel,),
    "run.end": (runs.on_end, giving_back.after_end),
    "run.drop": (giving_back.before_drop, runs.on_drop),
    "wait.invoke": (results.on_wait_invoke,),
    "wait.ok": (workers.on_wait_ok, results.on_wait_ok),
    "wait.refused": (results.on_wait_refused,),
    "wait.unknown": (answers.on_wait_unknown,),
    "deljob.invoke": (replies.on_invoke, results.on_delete),
    "dequeue.invoke": (replies.on_invoke,),
    **dict.fromkeys(
        (
            *(f"{verb}.ok" for verb in _GIVING if verb not in {"nack", "release"}),
            *(f"{verb}.unknown" for verb in _GIVING),
            *(f"{verb}.refused" for verb in replies.VERBS),
        ),
        (
            replies.on_end,
            runs.on_given_back,
            giving_back.on_given_back,
            results.on_refused,
        ),
    ),
    **dict.fromkeys(
        ("nack.ok", "release.ok"),
        (
            replies.on_end,
            runs.on_given_back,
            giving_back.on_given_back,
            request_options.on_end,
            postponing.on_given_back_ok,
            durability.on_given_back_ok,
            workers.on_give_back_ok,
            errors.on_nack_ok,
        ),
    ),
    "working.invoke": (
        client_events.on_working_invoke,
        workers.on_working_invoke,
        runs.on_working,
    ),
    "working.ok": (
        work.on_event,
        runs.on_working_end,
        safety.before_working_ok,
        workers.on_working_ok,
        replies.on_working_ok,
        limits.on_working_ok,
        client_events.on_working_end,
        timers.on_working,
        postponing.on_working_ok,
        _forget,
    ),
    "working.refused": (
        safety.on_working_refused,
        workers.on_working_refused,
        client_events.on_working_end,
        runs.on_working_end,
    ),
    "working.unknown": (
        work.on_event,
        postponing.on_working_unknown,
        client_events.on_working_end,
        timers.on_working,
        runs.on_working_end,
    ),
}
_AFTER_SENDING: Final[dict[str, tuple[_Step, ...]]] = {
    "deljob": (custody.after_deljob, durability.after_setack),
    **dict.fromkeys(("setack", "result"), (durability.after_setack,)),
    **dict.fromkeys(
        ("gotack", "ackholders"),
        (custody.after_gotack, durability.after_setack, results.after_confirmed),
    ),
    "gotjob": (durability.after_gotjob,),
    "queued": (postponing.after_queued,),
    "postponed": (snoozes.after_sending,),
    "jobstate": (durability.after_jobstate,),
    "purge": (request_options.on_purge_sent,),
    **dict.fromkeys(("waiting", "havejobs", "needjobs"), (work.on_send,)),
    "keyclaim": (unique.after_keyclaim, silence.on_claim),
    "keycancel": (unique.on_keycancel,),
}
_AFTER_RECEIVING: Final[dict[str, tuple[_Step, ...]]] = {
    "queued": (
        held.on_news,
        timers.on_announcement,
        postponing.on_queued_elsewhere,
        limits.after_received,
    ),
    "working": (held.on_news, timers.on_announcement, limits.after_received),
    "willqueue": (postponing.on_warning,),
    "postponed": (held.on_news, snoozes.after_received),
    "joberror": (errors.after_received,),
    "fail": (tables.on_fail,),
    "keyanswer": (silence.on_claim_answer,),
    "keycancel": (unique.on_keycancel,),
    "gotjob": (answers.on_gotjob,),
    "result": (results.after_received,),
}
"""Both tables have the name of the message as key."""
OF_THE_WORLD: Final[dict[str, tuple[_Step, ...]]] = {
    "add.invoke": (client_events.on_add_invoke,),
    "add.refused": (unique.on_refused, cluster_liveness.on_add_end, client_events.on_add_end),
    "add.unknown": (
        situations.on_add_unknown,
        cluster_liveness.on_add_end,
        client_events.on_add_end,
    ),
    "get.unknown": (answers.on_get_unknown,),
    "hangup": (workers.on_hangup,),
    "worker.start": (runs.on_start,),
    "worker.stop": (runs.on_stop,),
    "worker.stopped": (runs.on_stopped,),
    "worker.kill": (runs.on_kill,),
    **dict.fromkeys(("worker.stall", "worker.resume"), (runs.on_stall,)),
    **dict.fromkeys(
        ("purge.invoke", "purge-dead.invoke"), (workers.on_purge_invoke, request_options.on_order)
    ),
    **dict.fromkeys(
        ("purge.ok", "purge-dead.ok"), (workers.on_purge_ok, request_options.on_order_end)
    ),
    "redrive.invoke": (deadletters.on_redrive_invoke, request_options.on_order),
    "enqueue-queue.invoke": (client_events.on_enqueue_queue, request_options.on_order),
    "enqueue-queue.ok": (request_options.on_order_end,),
    **dict.fromkeys(
        ("redrive.ok", "redrive.refused"),
        (deadletters.on_redrive_end, request_options.on_order_end),
    ),
    "query.invoke": (queries.on_invoke,),
    "query.ok": (queries.on_ok,),
    **dict.fromkeys(("query.refused", "query.unknown"), (queries.on_unanswered,)),
    **dict.fromkeys(BLOCKS.values(), (faults.on_block,)),
    **dict.fromkeys(BLOCKS, (faults.on_heal,)),
    "delay": (faults.on_slow,),
    "slow": (faults.on_slow,),
    "memory": (faults.on_memory,),
    "pause-queue": (faults.on_pause_queue, refusals.on_pause_order),
    "crash": (
        situations.on_crash,
        durability.on_crash,
        stops.on_crash,
        faults.on_crash,
        workers.on_crash,
        results.on_crash,
        turns.on_crash,
        queries.on_restart,
    ),
    "start": (
        tables.judge_outage,
        durability.on_start,
        faults.on_start,
        tables.on_start,
        limits.on_start,
        queries.on_restart,
    ),
    "wipe": (faults.on_wipe, results.on_wipe, queries.on_restart),
    "remove": (situations.on_remove, faults.on_wipe, results.on_wipe, queries.on_restart),
    "loaded": (durability.on_loaded, stops.on_loaded),
    **dict.fromkeys(durability.TROUBLES, (durability.on_trouble,)),
    "disk.flip": (durability.on_flip,),
    "pause": (faults.on_pause,),
    "resume": (tables.judge_outage, faults.on_resume),
    "clock.step": (faults.on_clock,),
    "clock.rate": (faults.on_clock,),
    "leave": (faults.on_leave,),
    "forget": (faults.on_forget, tables.on_forget, limits.on_change),
    "meet": (tables.on_meet, limits.on_change),
    "limit": (limits.on_order,),
    "demand": (limits.on_demand,),
    "nodes": (tables.on_nodes,),
    "invariant": (tables.on_invariant,),
    "unmet": (meetings.on_unmet,),
    "pairs": (meetings.on_pairs,),
    "chaos.end": (repairs.judge_before_heal, faults.on_core),
    "heal.end": (faults.on_core,),
    "rejoin": (faults.on_rejoin,),
    "exception": (safety.on_exception,),
    "error": (safety.on_exception,),
    "end": (faults.on_end,),
}
