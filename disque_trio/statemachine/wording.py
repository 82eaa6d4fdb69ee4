"""The row of a message: its name, its job, its queue, and the rest as text.

A message about several jobs (YOURJOBS) names the job only if it is one; `detail` has them all.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.messages import (
    DelJob,
    Enqueue,
    Fail,
    GossipMessage,
    GotAck,
    GotJob,
    HaveJobs,
    Holders,
    JobsMessage,
    JobState,
    KeyAnswer,
    KeyCancel,
    KeyClaim,
    Meet,
    Message,
    NeedJobs,
    Pause,
    Ping,
    Pong,
    Postponed,
    Purge,
    Queued,
    ReplJob,
    SetAck,
    Waiting,
    WillQueue,
    Working,
    YourJobs,
)

Names = dict[NodeId, str]
"""The names of nodes in the run."""
SHORT: Final = 8
"""Digits of a node id that name the node where there is no run, as in the ids of its jobs."""


def short_name(node: NodeId) -> str:
    """The name of a node in rows of live nodes."""
    return node[:SHORT].decode("latin-1")


def names_in(message: Message) -> Names:
    """The short names of the nodes in the message."""
    ids: Iterable[NodeId] = ()
    if isinstance(message, JobsMessage):
        ids = [holder for copy in message.copies for holder in copy.holders]
    elif isinstance(message, Holders):
        ids = message.holders
    elif isinstance(message, Fail):
        ids = [message.node]
    return {node: short_name(node) for node in ids}


@attrs.define(eq=False)
class Wording:
    """The message's part of a row."""

    name: str
    job: str = ""
    queue: str = ""
    detail: str = ""


def wording(message: Message, names: Names) -> Wording:
    """The message's part of its row."""
    return _WORDINGS[type(message)](message, names)


def _of_gossip(name: str) -> Callable[[GossipMessage, Names], Wording]:
    return lambda message, names: Wording(
        name, detail=",".join([names.get(entry.id, "?") for entry in message.gossip])
    )


def _of_job(name: str) -> Callable[[GotJob | WillQueue | DelJob | Working, Names], Wording]:
    return lambda message, _names: Wording(name, message.id.decode("latin-1"))


def _of_fail(message: Fail, names: Names) -> Wording:
    return Wording("fail", detail=names.get(message.node, "?"))


def _of_repljob(message: ReplJob, names: Names) -> Wording:
    said = _of_jobs("repljob", message, names)
    if message.no_reply:
        return Wording(said.name, said.job, said.queue, f"{said.detail} no-reply")
    return said


def _of_yourjobs(message: YourJobs, names: Names) -> Wording:
    return _of_jobs("yourjobs", message, names)


def _of_jobs(name: str, message: JobsMessage, names: Names) -> Wording:
    copies = message.copies
    holders = ";".join(
        [",".join([names.get(holder, "?") for holder in copy.holders]) for copy in copies]
    )
    ids = [copy.id.decode("latin-1") for copy in copies]
    one = ids[0] if len(ids) == 1 else ""
    queue = copies[0].queue.decode("utf-8", "replace") if copies else ""
    return Wording(name, one, queue, f"jobs={','.join(ids)} holders={holders}")


def _of_enqueue(message: Enqueue, _names: Names) -> Wording:
    return Wording("enqueue", message.id.decode("latin-1"), detail=f"delay={message.delay}")


def _of_queued(message: Queued, _names: Names) -> Wording:
    why = "nack" if message.nack else "redelivery" if message.redelivery else ""
    return Wording("queued", message.id.decode("latin-1"), detail=why)


def _of_setack(message: SetAck, _names: Names) -> Wording:
    return Wording("setack", message.id.decode("latin-1"), detail=f"holders={message.holders}")


def _of_gotack(message: GotAck, _names: Names) -> Wording:
    return Wording(
        "gotack", message.id.decode("latin-1"), detail="known" if message.known else "unknown"
    )


def _of_needjobs(message: NeedJobs, _names: Names) -> Wording:
    queue = message.queue.decode("utf-8", "replace")
    waits = " waits" if message.waits else ""
    return Wording("needjobs", queue=queue, detail=f"count={message.count}{waits}")


def _of_number(name: str) -> Callable[[Waiting | HaveJobs, Names], Wording]:
    return lambda message, _names: Wording(
        name, queue=message.queue.decode("utf-8", "replace"), detail=f"count={message.count}"
    )


def _of_holders(message: Holders, names: Names) -> Wording:
    holders = ",".join([names.get(holder, "?") for holder in message.holders])
    return Wording("holders", message.id.decode("latin-1"), detail=f"holders={holders}")


def _of_jobstate(message: JobState, _names: Names) -> Wording:
    state = message.state
    word = "dead" if state.is_dead else "alive"
    detail = f"{word} redriven={state.epoch} left={message.left}"
    return Wording("jobstate", message.id.decode("latin-1"), detail=detail)


def _of_postponed(message: Postponed, _names: Names) -> Wording:
    detail = f"wait={message.wait} nacks={message.nacks}"
    detail += f" snoozes={message.snoozes}" if message.snoozes else ""
    detail += " new" if message.is_new or message.is_snooze else ""
    return Wording("postponed", message.id.decode("latin-1"), detail=detail)


def _of_keyclaim(message: KeyClaim, _names: Names) -> Wording:
    queue, key = message.queue.decode("utf-8", "replace"), message.key.decode("utf-8", "replace")
    job = message.id.decode("latin-1")
    return Wording("keyclaim", job, queue, f"number={message.number}/{message.round} key={key}")


def _of_keyanswer(message: KeyAnswer, _names: Names) -> Wording:
    facts = ",".join([f"{fact.id.decode('latin-1')}:{fact.word}" for fact in message.facts])
    return Wording("keyanswer", detail=f"number={message.number}/{message.round} facts={facts}")


def _of_keycancel(message: KeyCancel, _names: Names) -> Wording:
    queue, key = message.queue.decode("utf-8", "replace"), message.key.decode("utf-8", "replace")
    return Wording("keycancel", message.id.decode("latin-1"), queue, f"key={key}")


def _of_pause(message: Pause, _names: Names) -> Wording:
    queue = message.queue.decode("utf-8", "replace")
    return Wording("pause", queue=queue, detail=f"bits={message.bits}")


def _of_purge(message: Purge, _names: Names) -> Wording:
    return Wording("purge", queue=message.queue.decode("utf-8", "replace"))


_WORDINGS: Final[dict[type[Message], Callable[[Any, Names], Wording]]] = {
    Ping: _of_gossip("ping"),
    Pong: _of_gossip("pong"),
    Meet: _of_gossip("meet"),
    Fail: _of_fail,
    ReplJob: _of_repljob,
    YourJobs: _of_yourjobs,
    GotJob: _of_job("gotjob"),
    Enqueue: _of_enqueue,
    Queued: _of_queued,
    SetAck: _of_setack,
    WillQueue: _of_job("willqueue"),
    GotAck: _of_gotack,
    DelJob: _of_job("deljob"),
    Working: _of_job("working"),
    NeedJobs: _of_needjobs,
    Pause: _of_pause,
    Waiting: _of_number("waiting"),
    HaveJobs: _of_number("havejobs"),
    Holders: _of_holders,
    Postponed: _of_postponed,
    Purge: _of_purge,
    KeyClaim: _of_keyclaim,
    KeyAnswer: _of_keyanswer,
    KeyCancel: _of_keycancel,
    JobState: _of_jobstate,
}


def name_of(kind: type[Message]) -> str:
    """The name of a message in rows, faults and events."""
    return kind.__name__.lower()


MESSAGES: Final = tuple([name_of(kind) for kind in _WORDINGS])
"""The names of all messages."""
