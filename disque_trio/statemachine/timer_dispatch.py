"""Dispatch of due timers to the modules that own them."""

from collections.abc import Callable
from typing import Any, Final

from disque_trio.statemachine import (
    enqueuing,
    federation,
    keeping,
    key_claim,
    key_index,
    key_ordering,
    key_search,
    longcommands,
    membership,
    offering,
    pressure,
    purging,
    queue_announcements,
    repair,
    requeue,
    resend,
    results,
    sessions,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.keys import Kept, Keys, Ordering, Reconciliation, Search
from disque_trio.statemachine.limit import Limit
from disque_trio.statemachine.memory import Memory
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import (
    Cron,
    Demand,
    Enqueuing,
    KeptResult,
    NodeState,
    Purging,
    QueueAnnouncements,
    Repair,
    Resend,
)
from disque_trio.statemachine.timers import Timed

ON_TIMER: Final[dict[type, Callable[[NodeState, Any], None]]] = {
    Job: requeue.on_due,
    Client: sessions.on_due,
    Queue: federation.on_queue_due,
    Demand: offering.on_due,
    QueueAnnouncements: queue_announcements.on_due,
    Cron: membership.on_cron,
    Repair: repair.on_due,
    Resend: resend.on_due,
    Purging: purging.on_due,
    Enqueuing: enqueuing.on_due,
    Timed: sessions.on_pause_end,
    Keys: key_claim.on_due,
    Kept: key_index.on_due,
    KeptResult: results.on_due,
    Search: key_search.on_due,
    Reconciliation: key_ordering.on_reconcile_due,
    Ordering: key_ordering.on_due,
    Memory: pressure.on_review,
    Limit: keeping.on_due,
}


def run(node: NodeState) -> None:
    """Handle up to `Knobs.due_per_tick` due timers, and run a step of a long command."""
    for _ in range(node.knobs.due_per_tick):
        owner = node.timers.pop_due(node.mono)
        if owner is None:
            break
        ON_TIMER[type(owner)](node, owner)
    if node.long_commands:
        longcommands.go_on(node)
