"""Ended jobs in the replies of JSCAN and SHOW."""

from collections.abc import Callable
from typing import Final

from disque_trio.statemachine.base import JobId, Reply
from disque_trio.statemachine.commands import jobs
from disque_trio.statemachine.endings import HEAD, Endings, Record, Sheet
from disque_trio.statemachine.longcommands import Steps
from disque_trio.statemachine.state import NodeState

STATE: Final = b"ended"


def show(node: NodeState, job_id: JobId) -> Steps:
    """The kept record of an ended job, with its result; null if there is none."""
    found, before = node.endings.find(job_id, node.endings.end)
    while before:
        yield
        found, before = node.endings.find(job_id, before)
    if found is None:
        return jobs.left(node, job_id)
    return describe(found) + jobs.result_of(node, job_id)


def look(
    endings: Endings, fits: Callable[[Sheet, int], bool], before: int, most: int, steps: int
) -> tuple[list[Record], int]:
    """Up to `most` matching records out of the last `steps` before number `before`, newest first;
    and the number before which to continue, or 0 at the end."""
    found: list[Record] = []
    for sheet in endings.newest(before):
        first = sheet.first
        for at in range(min(sheet.count, before - first) - 1, -1, -1):
            if not steps or len(found) == most:
                return found, first + at + 1
            steps -= 1
            if fits(sheet, at):
                found.append(sheet.record(at))
    return found, 0


def describe(record: Record) -> list[Reply]:
    """The elements of SHOW, most of which have no value for an ended job; then the outcome."""
    head, details = record.head, record.details
    is_whole = len(head) < HEAD
    reply: list[Reply] = [b"id", record.id, b"queue", record.queue, b"state", STATE]
    reply += [b"repl", 0, b"ttl", 0, b"ctime", record.ctime, b"delay", 0, b"retry", 0]
    reply += [b"nacks", record.nacks, b"additional-deliveries", record.deliveries]
    reply += [b"nodes-delivered", [], b"nodes-confirmed", [], b"next-requeue-within", None]
    reply += [b"next-awake-within", None, b"body", head if is_whole else None]
    reply += [b"outcome", record.outcome, b"ended-at", record.ended]
    if not is_whole:
        reply += [b"body-start", head]
    if record.by:
        reply += [b"by", record.by]
    if details.group is not None:
        reply += [b"group", details.group]
    if details.key is not None:
        reply += [b"key", details.key]
    if details.reason:
        reply += [b"reason", details.reason]
    if details.error.text:
        reply += [b"failed-at", details.error.at, b"error", details.error.text]
    return reply
