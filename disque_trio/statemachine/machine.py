"""The machine: accepts inputs and returns outboxes. The only module that imports all the others.

Driver contract (docs/design.md, "The machine"):

1. `now` never goes back on its monotonic clock.
2. Any number of inputs, then one `take()`, which calls `complete()` first. A driver that reads the
   trace or the outbox before `take()` calls `complete()` before that.
3. The driver carries out the outputs in the order given in `outbox`.
4. A client's requests are passed in only while `accepts` returns True, and again when the client
   is in `resumed`; for one that waits for copies, `follow` takes those that `follows` accepts.
5. The machine never calls out, never blocks, and never raises for what a client or a peer sends.

Owns `NodeState.mono`, `wall`, `micros` and `out`, `Client.command`, `Cluster.messages_received`,
`Outbox.changing`, and the counters of requests and frames in `Stats`; sets `Client.active`
and `NodeState.begun`.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from disque_trio.statemachine import (
    counts,
    delivery,
    dispatch,
    federation,
    hostnames,
    journaling,
    keeping,
    links,
    membership,
    metrics,
    pending_adds,
    pipelines,
    pressure,
    queue_announcements,
    recovery,
    send,
    sessions,
    spilling,
    timer_dispatch,
    timing,
    trace,
    waiters,
    watchers,
)
from disque_trio.statemachine.admission import must_check, refusal_of
from disque_trio.statemachine.base import (
    HANDSHAKE,
    PENDING,
    CommandError,
    Failure,
    LinkId,
    Millis,
    Now,
    Reply,
    Spilled,
)
from disque_trio.statemachine.chores import Lookup
from disque_trio.statemachine.client import Blocked, Client, ReplyMode
from disque_trio.statemachine.cluster import Cluster, Peer
from disque_trio.statemachine.commands import addjob, latency, server, unlisted
from disque_trio.statemachine.commands import config as configuration
from disque_trio.statemachine.commands.rows import Command, Flag
from disque_trio.statemachine.commands.table import renamed
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.messages import Frame, GossipMessage, count_of
from disque_trio.statemachine.outbox import Outbox
from disque_trio.statemachine.records import Record
from disque_trio.statemachine.redaction import redacted
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.stats import Facts, Stats

_ON: Final = ReplyMode.ON
_NO: Final = Blocked.NO


class Machine:
    """One node, without sockets and clocks."""

    def __init__(
        self,
        config: Config,
        myself: Peer,
        rng: random.Random,
        now: Now,
        facts: Facts | None = None,
        nodes: Iterable[Peer] = (),
    ) -> None:
        facts = facts or Facts()
        self.state = NodeState(
            config=config,
            rng=rng,
            mono=now.mono,
            wall=now.wall,
            micros=now.micros,
            cluster=Cluster(myself, {myself.id: myself}, incarnation=facts.incarnation),
            facts=facts,
            stats=Stats(started=now.mono),
            is_recording=config.appendonly,
            is_recording_queues=config.appendonly and config.records_queues,
        )
        self._commands = renamed(config.renamed_commands)
        membership.restore(self.state, nodes)
        pressure.review(self.state)

    # Clients.

    def connect(self, address: bytes, now: Now, *, is_unix: bool = False) -> Client | None:
        """A client has connected. Returns None if there are too many."""
        self._set_clocks(now)
        return sessions.connect(self.state, address, is_unix=is_unix)

    def turned_away(self, reason: str, *, is_link: bool = False) -> None:
        """Count a client, or a bus link, that the driver rejected."""
        metrics.count_turned_away(self.state, reason, is_link=is_link)

    def accepts(self, client: Client) -> bool:
        """May a request of this client be passed in now?"""
        if client.blocked is _NO and not client.is_closing and not self.state.paused_until:
            return True
        return sessions.accepts(self.state, client)

    def request(self, client: Client, args: list[bytes], now: Now) -> Command | None:
        """Handle a request. Returns the command that was executed; None if the request was
        refused."""
        node = self.state
        if now.mono != node.mono or now.micros != node.micros or now.wall != node.wall:
            self._set_clocks(now)
        client.active = node.mono
        name = args[0]
        row = self._commands.get(name) or self._commands.get(name.lower())
        if (
            row is None
            or client.reply_mode is not _ON
            or not row.least <= len(args) <= row.most
            or must_check(node, client)
        ):
            return self._unusual_request(client, args, row)
        client.command = row.name
        if row.may_change:
            node.out.changing[client] = None
        node.stats.commands_processed += 1
        try:
            reply = row.handler(node, client, args)
        except (CommandError, MemoryError) as error:
            reply = counts.refusal(node, error, is_whole=row.is_whole(node, args))
        if reply is not PENDING:
            send.answer(node, client, reply)
        if node.ready:
            delivery.serve_ready(node)
        return row

    def requests(
        self, client: Client, requests: Sequence[list[bytes]], now: Now, clock: Callable[[], int]
    ) -> int:
        """Handle the leading plain requests, with the effects of `accepts`, `request` and `timed`
        for each. Returns how many were handled. `clock` returns nanoseconds, for `timed` only."""
        self._set_clocks(now)
        return pipelines.take(self.state, self._commands.get, client, requests, clock)

    def is_read_only(self, args: list[bytes]) -> bool:
        """Is this a request that changes no job?"""
        row = self._commands.get(args[0]) or self._commands.get(args[0].lower())
        return row is None or not row.may_change

    def follows(self, client: Client, args: list[bytes]) -> bool:
        """Is this an ADDJOB that `follow` may handle while the client waits for replicas?"""
        if client.blocked is not Blocked.COPIES:
            return False
        row = self._commands.get(args[0]) or self._commands.get(args[0].lower())
        return (
            row is not None
            and row.handler is addjob.addjob
            and addjob.may_follow(self.state, client, args)
        )

    def follow(self, client: Client, args: list[bytes], now: Now) -> Command | None:
        """As `request`, for one more ADDJOB of a client that waits for replicas of earlier ones."""
        node = self.state
        self._set_clocks(now)
        client.active = node.mono
        row = self._commands.get(args[0]) or self._commands[args[0].lower()]
        refusal = refusal_of(node, client, args, row) if must_check(node, client) else None
        if refusal is None:
            reply = self._execute(client, args, row)
        else:
            reply = counts.failure(node, refusal.text)
        pending_adds.answer(client, reply)
        if node.ready:
            delivery.serve_ready(node)
        return row if refusal is None else None

    def _unusual_request(
        self, client: Client, args: list[bytes], row: Command | None
    ) -> Command | None:
        """The slow path: unknown commands, CLIENT REPLY, requests after MULTI, and the checks."""
        node = self.state
        if row is None and unlisted.expels(node, client, args):
            return None
        sessions.enter_silence(client)
        refusal = unlisted.refuse_held(client, args, row) if unlisted.is_held(client) else None
        if refusal is None and row is not None:
            refusal = refusal_of(node, client, args, row)
        if refusal is not None:
            is_work = row is not None and Flag.WRITE in row.flags
            send.answer(node, client, counts.failure(node, refusal.text, is_work=is_work))
        elif row is None:
            send.answer(node, client, unlisted.answer(node, client, args[0], self._commands))
        else:
            send.answer_if_any(node, client, self._execute(client, args, row))
        sessions.leave_silence(client)
        unlisted.after(client, args, row)
        if node.ready:
            delivery.serve_ready(node)
        return row if refusal is None else None

    def _execute(self, client: Client, args: list[bytes], row: Command) -> Reply:
        node = self.state
        client.command = row.name
        if row.may_change:
            node.out.changing[client] = None
        node.stats.commands_processed += 1
        if node.monitors:
            server.show_to_monitors(self.state, client, redacted(row.name, args))
        try:
            return row.handler(node, client, args)
        except (CommandError, MemoryError) as error:
            return counts.refusal(node, error, is_whole=row.is_whole(node, args))

    def refuse(self, client: Client, text: bytes, now: Now) -> None:
        """The client has violated the protocol: reply with an error and close the connection."""
        self._set_clocks(now)
        self.state.stats.protocol_errors += 1
        send.answer(self.state, client, Failure(text))
        sessions.close(self.state, client)

    def timed(self, row: Command, args: list[bytes], ns: int) -> None:
        """Record the duration of a request, in nanoseconds, as measured by the driver."""
        timing.timed(self.state, row, args, ns)

    def observe(self, event: bytes, duration: Millis, now: Now) -> None:
        """Record the duration of an event that is not a command."""
        self._set_clocks(now)
        latency.record(self.state, event, duration)

    def disconnect(self, client: Client, now: Now) -> None:
        """The client's connection has ended."""
        self._set_clocks(now)
        sessions.disconnect(self.state, client)

    def done(self, client: Client, outcome: object, now: Now) -> None:
        """The driver has carried out a chore of the client."""
        self._set_clocks(now)
        sessions.done(self.state, client, outcome)
        self._serve()

    # The journal.

    def load(self, records: Iterable[Record], now: Now) -> None:
        """Load records of the journal. Commands are refused until `loaded` returns True."""
        self._set_clocks(now)
        recovery.load(self.state, records)

    def loaded(self, now: Now, most: int = 1 << 60) -> bool:
        """Restore up to `most` jobs, after all records were passed to `load`. Returns True once all
        are restored."""
        self._set_clocks(now)
        is_done = recovery.finish(self.state, most)
        if is_done:
            configuration.turn_off_once(self.state)
        return is_done

    def record(self, *, on: bool) -> None:
        """Set whether to write records; initially, `appendonly` decides."""
        journaling.record(self.state, on=on)

    def record_queues(self, *, on: bool) -> None:
        """Set whether to record also which jobs are queued, before a controlled stop."""
        journaling.record_queues(self.state, on=on)

    def journal_failed(self, reason: str, now: Now) -> None:
        """The journal cannot be written: refuse commands that write."""
        self._set_clocks(now)
        sessions.refuse_writes(self.state, reason)

    def journal_mended(self, now: Now) -> None:
        """The journal is written and complete again."""
        self._set_clocks(now)
        sessions.allow_writes(self.state)

    def adopt(self, config: Config, now: Now) -> None:
        """The driver has reread the secrets from their files."""
        self._set_clocks(now)
        configuration.adopt(self.state, config)

    # The bus.

    def meet(self, ip: str, port: int, now: Now) -> None:
        """Begin a handshake with the node at this address, as CLUSTER MEET does."""
        self._set_clocks(now)
        membership.meet(self.state, ip, port)

    def looked_up(self, name: str, lookup: Lookup, now: Now) -> None:
        """A name of `Outbox.lookups` has been looked up."""
        self._set_clocks(now)
        hostnames.looked_up(self.state, name, lookup)

    def accepted(self, local_ip: str, remote_ip: str, now: Now) -> LinkId:
        """Another node has opened a link to this one."""
        self._set_clocks(now)
        return links.accepted(self.state, local_ip, remote_ip)

    def linked(self, link: LinkId, local_ip: str, remote_ip: str, now: Now) -> None:
        """A link that this node dialled is up."""
        self._set_clocks(now)
        links.linked(self.state, link, local_ip, remote_ip)

    def unlinked(self, link: LinkId, now: Now) -> None:
        """A link has ended, or could not be opened."""
        self._set_clocks(now)
        links.unlinked(self.state, link)

    def message(self, link: LinkId, frame: Frame, now: Now) -> None:
        """A frame has arrived on a link."""
        node = self.state
        self._set_clocks(now)
        cluster = node.cluster
        on = cluster.links.get(link)
        if on is None:
            return
        if isinstance(frame.message, GossipMessage):
            cluster.messages_received += 1
            membership.on_gossip(node, on, frame)
            return
        messages = frame.content
        cluster.messages_received += sum(map(count_of, messages))
        sender = cluster.nodes.get(frame.sender)
        if sender is None or sender.flags & HANDSHAKE or sender is cluster.myself:
            metrics.count_refused(node, "unknown sender", 1)
            return
        dispatch.receive(node, sender, messages)

    def refused(self, reason: str, times: int) -> None:
        """Count bus input that was dropped before it became a frame."""
        metrics.count_refused(self.state, reason, times)

    def dropped(self, link: LinkId, frames: int) -> None:
        """`frames` frames were dropped because the send queue of their link was full."""
        self.state.stats.frames_dropped += frames
        queue_announcements.announce_again(self.state, link)

    def overflow(self) -> list[Job]:
        """Jobs whose bodies the driver must write to disk, while `Memory.held` is above
        `Memory.spill_above`."""
        return spilling.overflow(self.state)

    def spilled(self, jobs: Sequence[Job], bodies: Sequence[Spilled]) -> None:
        """The bodies of these jobs are on disk; `bodies` are their placeholders, or empty if
        writing failed."""
        spilling.spilled(self.state, jobs, bodies)

    # Time and output.

    def tick(self, now: Now) -> None:
        """Run the timers that are due."""
        self._set_clocks(now)
        timer_dispatch.run(self.state)
        self._serve()

    def deadline(self) -> Millis:
        """When `tick` must be called next, on the monotonic clock."""
        return self.state.mono if self.state.long_commands else self.state.timers.deadline()

    def complete(self) -> None:
        """End of a batch of inputs: do the work that is done once per batch."""
        node = self.state
        if node.mono >= node.stats.sampler.last_time + metrics.PERIOD:
            metrics.sample(node)
        if node.ended:
            waiters.answer_ended(node)
        if node.short or node.freed:
            keeping.settle(node)
            self._serve()
        if node.pending_queues:
            federation.settle(node)
        if node.mono >= node.memory.review_at and node.out:
            # Only if there is output, because not every driver calls this without any.
            pressure.review(node)

    def take(self) -> Outbox:
        """Return the outputs of the inputs since the last call."""
        self.complete()
        node = self.state
        out, node.out, node.begun = node.out, Outbox(), None
        if out.messages and node.cluster.ring:
            watchers.note_use(node, out.messages)
        if out.messages and node.traces.is_on:
            trace.sent(node, out.messages)
        return out

    def _serve(self) -> None:
        if self.state.ready:
            delivery.serve_ready(self.state)

    def _set_clocks(self, now: Now) -> None:
        node = self.state
        if now.mono > node.mono:  # noqa: PLR1730  (max() takes as long as all of the rest)
            node.mono = now.mono
        node.wall = now.wall
        node.micros = now.micros
