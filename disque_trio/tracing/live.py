"""A machine that traces its inputs and outputs (docs/engines.md, "Traces of live nodes").

It is the plain machine with a recorder around it; a node without `trace-file` uses the plain one,
at no cost. `take` writes the rows of a batch before any of its output leaves the node, so the trace
of a dead node includes everything that other nodes and clients observed.

A node cannot observe its clients, so rows have its own view: ``ok`` when it replies, whether or not
the reply arrives, and only ``serve`` for a job that it delivers. Clients are identified by their
addresses, nodes by the beginnings of their ids. Heartbeat messages are left out, and a long body is
replaced by its digest. With `trace-file-sample` rows about other jobs are left out, and messages
about several jobs are reduced to the sampled ones.
"""

import hashlib
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs

from disque_trio.statemachine.base import ClientId, LinkId, Now
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.commands.rows import Command
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.events import Cause, Event, Kind
from disque_trio.statemachine.jobtraces import is_chosen
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import Frame, GossipMessage, Message
from disque_trio.statemachine.outbox import Outbox
from disque_trio.statemachine.redaction import redacted
from disque_trio.statemachine.stats import Facts
from disque_trio.statemachine.wording import names_in, short_name, wording
from disque_trio.tracing import client_rows
from disque_trio.tracing.client_rows import Note
from disque_trio.tracing.rows import Row
from disque_trio.tracing.sampling import is_about_chosen, messages_about_chosen

LONGEST_BODY: Final = 64
"""Longer bodies are replaced by their digests."""

Sink = Callable[[list[Row]], None]
"""Takes the rows of a batch, at least one."""


@attrs.define
class _Request:
    """A request that waits for its reply."""

    words: list[bytes]
    ref: int
    is_left_out: bool = False
    """The request adds a job that is not sampled."""


class TracedMachine(Machine):
    """The machine, with a trace of its inputs and outputs."""

    def __init__(
        self,
        config: Config,
        myself: Peer,
        rng: random.Random,
        now: Now,
        facts: Facts | None = None,
        nodes: Iterable[Peer] = (),
    ) -> None:
        super().__init__(config, myself, rng, now, facts, nodes)
        self.state.trace = []
        self._sink: Sink | None = None
        self._sample = config.trace_file_sample
        self._now = now
        self._rows: list[Row] = []
        self._requests: dict[ClientId, deque[_Request | None]] = {}
        """By client: requests without a reply so far, in order; None for one without rows."""
        self._last_ref = 0
        self._messages_seen = self._replies_seen = self._dials_seen = 0
        self._dialled: dict[LinkId, Peer] = {}
        """The peers of dialled links, kept until everything sent on a link has its row."""

    def trace(self, sink: Sink, cause: str) -> None:
        """Start the trace. `cause` is fresh for a new node, and empty for one with a node table."""
        self._sink = sink
        self._rows.clear()
        self._add("start", cause=cause)

    # Inputs.

    def requests(
        self,
        client: Client,  # noqa: ARG002
        requests: Sequence[list[bytes]],  # noqa: ARG002
        now: Now,  # noqa: ARG002
        clock: Callable[[], int],  # noqa: ARG002
    ) -> int:
        """Execute none, so that each request goes through `request`."""
        return 0

    def request(self, client: Client, args: list[bytes], now: Now) -> Command | None:
        self._now = now
        at = len(self._rows)
        self._ask(client, args)
        row = super().request(client, args, now)
        if row is None:
            # The request was not executed.
            self._requests.pop(client.id, None)
            del self._rows[at:]
        self._leave_out(client, at)
        self._expect(client)
        self._collect()
        return row

    def follow(self, client: Client, args: list[bytes], now: Now) -> Command | None:
        self._now = now
        at = len(self._rows)
        self._ask(client, args)
        row = super().follow(client, args, now)
        waiting = self._requests.get(client.id)
        if row is None and waiting:
            waiting[-1] = None
            del self._rows[at:]
        self._leave_out(client, at)
        self._expect(client)
        self._collect()
        return row

    def _leave_out(self, client: Client, at: int) -> None:
        """Remove the row of an ADDJOB of a job that is not sampled. The row does not name the job,
        but the events since then do, except with UNIQUE: then the row stays, as for an ADDJOB
        without an outcome."""
        if self._sample == 1 or self._rows[at:] == [] or self._rows[at].kind != "add.invoke":
            return
        for event in self.state.trace or ():
            is_new = event.kind is Kind.HOLD and event.cause is Cause.ADD
            if is_new and not is_chosen(event.job, self._sample):
                del self._rows[at:]
                request = self._requests[client.id][-1]
                assert request is not None
                request.is_left_out = True
                return

    def _expect(self, client: Client) -> None:
        """Expect no reply to an ADDJOB of a client with replies off."""
        waiting = self._requests.get(client.id)
        if waiting and client.pending_adds and client.pending_adds[-1].is_silent:
            waiting.pop()

    def disconnect(self, client: Client, now: Now) -> None:
        self._now = now
        super().disconnect(client, now)
        for request in self._requests.pop(client.id, ()):
            if request is not None:
                self._write_notes(client, request, client_rows.lost(request.words, "disconnect"))
        self._collect()

    def message(self, link: LinkId, frame: Frame, now: Now) -> None:
        self._now = now
        for message in frame.messages:
            if not isinstance(message, GossipMessage):
                self._add_messages("recv", short_name(frame.sender), message)
            super().message(link, attrs.evolve(frame, message=message), now)
            self._collect()

    def unlinked(self, link: LinkId, now: Now) -> None:
        super().unlinked(link, now)
        self._dialled.pop(link, None)

    def tick(self, now: Now) -> None:
        self._now = now
        super().tick(now)
        self._collect()

    # Outputs.

    def take(self) -> Outbox:
        self.complete()
        self._collect()
        self._messages_seen = self._replies_seen = self._dials_seen = 0
        for link in self.state.out.hangups:
            self._dialled.pop(link, None)
        if self._rows:
            rows, self._rows = self._rows, []
            if self._sink is not None:
                self._sink(rows)
        return super().take()

    def _collect(self) -> None:
        """Add the rows of the effects of the input: events, messages, replies."""
        out, events = self.state.out, self.state.trace
        if events:
            for event in events:
                self._add_event(event)
            events.clear()
        for link, _, _ in out.dials[self._dials_seen :]:
            self._note_dial(link)
        self._dials_seen = len(out.dials)
        for links, message in out.messages[self._messages_seen :]:
            if not isinstance(message, GossipMessage):
                for link in links:
                    self._add_messages("send", self._peer_at(link), message)
        self._messages_seen = len(out.messages)
        for client, reply in out.replies[self._replies_seen :]:
            waiting = self._requests.get(client.id)
            request = waiting.popleft() if waiting else None
            if request is not None:
                self._write_notes(client, request, client_rows.answered(request.words, reply))
        self._replies_seen = len(out.replies)

    def _note_dial(self, link: LinkId) -> None:
        found = self.state.cluster.links.get(link)
        if found is not None and found.peer is not None:
            self._dialled[link] = found.peer

    def _peer_at(self, link: LinkId) -> str:
        """Return the peer at the other end of the link; the link may have ended in this batch."""
        peer = self._dialled.get(link)
        return short_name(peer.id) if peer is not None else ""

    # Requests.

    def _ask(self, client: Client, args: list[bytes]) -> None:
        """Record a request, unless the client is a monitor, whose replies include other clients'
        requests."""
        waiting = self._requests.setdefault(client.id, deque())
        if client.blocked is Blocked.NO:
            # These got no reply: the client has turned replies off.
            waiting.clear()
        row = self._commands.get(args[0]) or self._commands.get(args[0].lower())
        if row is None or row.name == "getjob" or client.is_monitor:
            return
        self._last_ref += 1
        request = _Request(_words(row, args), self._last_ref)
        waiting.append(request)
        self._write_notes(client, request, client_rows.invoked(request.words))

    def _write_notes(self, client: Client, request: _Request, notes: Iterable[Note]) -> None:
        if request.is_left_out:
            return
        name = client.address.decode("utf-8", "replace")
        for note in notes:
            self._add(
                note.kind,
                job=note.job,
                queue=note.queue,
                client=name,
                cause=note.cause,
                detail=note.detail,
                ref=request.ref,
            )

    # Rows.

    def _add(
        self,
        kind: str,
        *,
        job: str = "",
        queue: str = "",
        client: str = "",
        peer: str = "",
        cause: str = "",
        detail: str = "",
        ref: int = 0,
    ) -> None:
        if not is_about_chosen(job, self._sample):
            return
        now = self._now
        node = short_name(self.state.cluster.myself.id)
        time = now.wall * 1000 + now.micros
        row = Row(
            time, kind, node, job, queue, client, peer, cause, detail, ref, now.mono, now.wall
        )
        self._rows.append(row)

    def _add_event(self, event: Event) -> None:
        client = self.state.clients.get(event.client)
        self._add(
            event.kind.value,
            job=event.job.decode("latin-1"),
            queue=event.queue.decode("utf-8", "replace"),
            client=client.address.decode("utf-8", "replace") if client is not None else "",
            peer=short_name(event.peer) if event.peer else "",
            cause=event.cause.value,
            detail=event.detail,
        )

    def _add_messages(self, kind: str, peer: str, message: Message) -> None:
        for each in messages_about_chosen(message, self._sample):
            part = wording(each, names_in(each))
            self._add(
                kind, job=part.job, queue=part.queue, peer=peer, cause=part.name, detail=part.detail
            )


def _words(row: Command, args: list[bytes]) -> list[bytes]:
    """Return the request, with the command's original name and without secrets."""
    words = [row.name.upper().encode(), *redacted(row.name, args)[1:]]
    if row.name == "addjob" and len(words) > 2:
        words[2] = _shown(words[2])
    return words


def _shown(body: bytes) -> bytes:
    if len(body) <= LONGEST_BODY:
        return body
    return b"sha256:%b" % hashlib.sha256(body).hexdigest().encode()
