"""Replies (S19): a node's reply agrees with what its rows show that it has done.

ACKJOB, FASTACK, NACK, ENQUEUE, DEQUEUE and DELJOB reply with the number of jobs that they affected;
WORKING replies with RETRY. A FASTACK of an unknown job (reply 0) is forwarded to the other nodes.
GETJOB returns at most COUNT jobs, only of the queues that it names, and takes one job from each
queue, from left to right, in rounds.
"""

import itertools
from typing import Final

from disque_trio.sim.checkers import answers
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.messages import ACK
from disque_trio.sim.checkers.obligations import SECOND
from disque_trio.sim.checkers.records import NEVER, Job, Request
from disque_trio.statemachine.knobs import Knobs
from disque_trio.terminal.counting import counted
from disque_trio.tracing.rows import Row

_VERBS_OF_ROWS: Final = {
    ("acked", "ackjob"): "ack",
    ("drop", "fastack"): "fastack",
    ("drop", "client-deljob"): "deljob",
    ("queue", "nack"): "nack",
    ("postpone", "nack"): "nack",
    ("queue", "enqueue"): "enqueue",
    ("dead", "nack"): "nack",
    ("dead", "nack-dead"): "nack",
    ("dead", "enqueue"): "enqueue",
    ("queue", "release"): "release",
    ("postpone", "release"): "release",
    ("unqueue", "dequeue"): "dequeue",
}
"""By kind and cause of a node's row: the command of the client that causes it."""
VERBS: Final[tuple[str, ...]] = tuple(dict.fromkeys(_VERBS_OF_ROWS.values()))


def on_invoke(case: Case, row: Row, job: Job) -> None:
    """A client sends a command about a job to a node."""
    verb = row.kind.partition(".")[0]
    key = (row.client, row.ref)
    request = case.requests.get(key)
    if request is None:
        request = case.requests[key] = Request(row.time)
    else:
        request.is_alone, request.is_of_many = False, True
    for other in job.requests.get((row.node, verb), {}).values():
        other.is_alone = request.is_alone = False
    job.requests.setdefault((row.node, verb), {})[key] = request


def on_end(case: Case, row: Row, job: Job) -> None:
    """S19: judge the reply, if there is one."""
    verb, _, how = row.kind.partition(".")
    key = (row.client, row.ref)
    case.requests.pop(key, None)
    if how == "unknown":
        # The node may still execute it, so a later request may find it done.
        return
    request = job.requests.get((row.node, verb), {}).pop(key, None)
    if request is None or how != "ok" or not case.has_node_rows or case.is_live:
        return
    case.check("S19")
    done = job.done.get((row.node, verb), NEVER) >= request.time
    is_gone = job.gone.get(row.node, NEVER) >= request.time
    if row.detail == "1" and not (done or is_gone or request.is_of_many):
        _report(case, row, f"{verb} is answered with 1, and nothing was done")
    elif row.detail == "0" and done and request.is_alone:
        _report(case, row, f"{verb} is answered with 0, and it was done")
    elif verb == "fastack" and row.detail == "0" and not _was_passed_on(case, row, job, request):
        _report(case, row, "fastack is answered with 0, and no other node has been told")


def _was_passed_on(case: Case, row: Row, job: Job, request: Request) -> bool:
    """Has the node, which does not hold the job, announced the ack to another node? It must if it
    had a link to any."""
    if not case.has_messages or not case.obligations.is_stream or not request.is_alone:
        return True
    world = case.world
    others = [node for node in world.nodes if node != row.node and world.is_up(node)]
    if any(job.announcement(row.node, node, ACK).sent >= request.time for node in others):
        return True
    return not any(
        not world.is_separated(row.node, node, request.time, row.time)
        and not world.may_be_unknown(row.node, node, row.time)
        for node in others
    )


def on_working_ok(case: Case, row: Row, job: Job) -> None:
    """S19: WORKING replies with RETRY, the time by which redelivery is postponed."""
    options = job.options
    if options is None or case.is_live:
        return
    case.check("S19")
    if row.detail != str(options.retry // SECOND):
        _report(case, row, f"working is answered with {row.detail}, RETRY is {options.retry}")


def note(_case: Case, row: Row, job: Job) -> None:
    """The state of the job at a node changes, maybe by the command of a client."""
    verb = _VERBS_OF_ROWS.get((row.kind, row.cause))
    if verb is not None:
        job.done[row.node, verb] = row.time
    if row.kind == "drop":
        job.gone[row.node] = row.time


def on_deliver(case: Case, row: Row, job: Job) -> None:
    """S19: judge one job of the reply to a GETJOB, if the trace has the number of that GETJOB."""
    asked = case.asked_for.get(row.client)
    if asked is None or not row.ref:
        return
    queues, count = asked
    case.check("S19")
    if row.queue not in queues:
        _report(case, row, f"{row.client} has not asked for jobs of {row.queue}")
        return
    last = case.replies.get(row.client)
    if last is None or last[0] != row.ref:
        last = case.replies[row.client] = (row.ref, [])
        answers.on_reply(case, row)
    last[1].append(queues.index(row.queue))
    if len(last[1]) > count:
        _report(
            case, row, f"{row.client} has asked for {counted(count, 'job')}, and this is one more"
        )
    elif len(queues) > 1 and not _has_steps(case, queues, count) and not _is_in_rounds(last[1]):
        order = " ".join(queues[place] for place in last[1])
        _report(case, row, f"{row.client} gets them in the order {order}")
    del job


def _has_steps(case: Case, queues: tuple[str, ...], count: int) -> bool:
    """Does the node serve other clients between the steps of this GETJOB? It then reads queues
    again that were filled meanwhile."""
    return max(count, len(queues)) > dict(case.plan.knobs).get("ids_at_once", Knobs().ids_at_once)


def _is_in_rounds(places: list[int]) -> bool:
    """Does each round, from left to right, contain only queues of the previous round?"""
    rounds: list[list[int]] = [[]]
    for place in places:
        if rounds[-1] and place <= rounds[-1][-1]:
            rounds.append([])
        rounds[-1].append(place)
    return all(place in before for before, after in itertools.pairwise(rounds) for place in after)


def _report(case: Case, row: Row, what: str) -> None:
    case.violate("S19", what, row.job, row.node)
