"""The engine of a worker: its inputs, its deadline, its effects.

A driver calls an input for each event, then takes the effects and carries them out in the order of
`records.Outbox`. It calls `tick` at the deadline. Times never decrease.
"""

from collections.abc import Sequence
from typing import Final

from disque_trio.statemachine.base import Reply
from disque_trio.worker.engine import (
    beginning,
    connecting,
    fetching,
    leases,
    outcomes,
    pace,
    suspects,
    words,
)
from disque_trio.worker.engine.records import (
    NEVER,
    RUNNING,
    WAITING,
    Drop,
    Link,
    Micros,
    Node,
    Outbox,
    Outcome,
    Pace,
    Phase,
    Reason,
    Request,
    Settings,
    State,
    Verb,
)


class Engine:
    """The engine of one worker."""

    def __init__(self, settings: Settings, now: Micros) -> None:
        queues = {queue.name: queue for queue in settings.queues}
        self.state: Final = State(
            settings,
            list(settings.nodes),
            {name: Node(name) for name in settings.nodes},
            queues,
            last_turn=now,
            running=dict.fromkeys(queues, 0),
            in_hand=dict.fromkeys(queues, 0),
            stuck=dict.fromkeys(queues, 0),
            paces={name: Pace(now) for name in queues},
            may_have=dict.fromkeys(queues, True),
            credits=dict.fromkeys(queues, 0),
        )

    # Inputs.

    def tick(self, now: Micros) -> None:
        """The deadline is reached. The first call starts the engine."""
        self._advance(now)
        self._go_on(now)

    def answered(self, now: Micros, link: int, *replies: Reply) -> None:
        """Replies have arrived on a connection."""
        self._advance(now)
        for reply in replies:
            known = self.state.links.get(link)
            if known is None or not known.requests:
                break
            request = known.requests.popleft()
            if known.requests:
                # It may have waited for this one.
                after = known.requests[0]
                after.due = max(after.due, now + after.patience)
            self._on_reply(now, known, request, reply)
        self._go_on(now)

    def lost(self, now: Micros, link: int) -> None:
        """A connection has ended, or could not be opened."""
        self._advance(now)
        known = self.state.links.get(link)
        if known is not None:
            self._on_lost(now, known)
        self._go_on(now)

    def finished(self, now: Micros, id: bytes, outcome: Outcome | None) -> None:
        """A handler has ended; `outcome` is None if it was cancelled and has none."""
        self.finished_all(now, [(id, outcome)])

    def finished_all(self, now: Micros, ends: Sequence[tuple[bytes, Outcome | None]]) -> None:
        """Handlers have ended, in this order."""
        self._advance(now)
        for id, outcome in ends:
            job = self.state.jobs.get(id)
            if job is not None and job.stage is RUNNING:
                pace.ended(self.state, now, job.queue)
                outcomes.finished(self.state, now, job, outcome)
        self._go_on(now)

    def stuck(self, now: Micros, id: bytes) -> None:
        """A handler does not end although it was cancelled: another job may run in its place."""
        self._advance(now)
        job = self.state.jobs.get(id)
        if job is not None and job.stage is RUNNING and not job.is_stuck:
            job.is_stuck = True
            self.state.stuck[job.queue] += 1
        self._go_on(now)

    def limit(self, now: Micros, id: bytes, duration: Micros) -> None:
        """Limit a running job to this duration from now on."""
        job = self.state.jobs.get(id)
        if job is not None and job.stage is RUNNING:
            job.limit_at = min(now + duration, NEVER)
            leases.watch(self.state, job)

    def know(self, now: Micros, names: Sequence[str]) -> None:
        """Set the nodes of the cluster, in order of preference."""
        state = self.state
        state.order = list(names)
        for name in names:
            state.nodes.setdefault(name, Node(name))
        if state.home not in names:
            state.home = ""
        self._advance(now)
        self._go_on(now)

    def quiet(self, now: Micros) -> None:
        """Take no more jobs until `resume`. Jobs in hand run."""
        self._advance(now)
        if self.state.phase is Phase.RUNNING:
            self.state.phase = Phase.QUIET
        self._go_on(now)

    def resume(self, now: Micros) -> None:
        """Take jobs again, after `quiet`."""
        self._advance(now)
        if self.state.phase is Phase.QUIET:
            self.state.phase = Phase.RUNNING
        self._go_on(now)

    def stop(self, now: Micros) -> None:
        """Stop gracefully: take no more jobs, and end when the running ones have ended. The second
        call cancels them."""
        state = self.state
        self._advance(now)
        if state.phase in (Phase.RUNNING, Phase.QUIET):
            self._drain(now)
        elif state.phase is Phase.DRAINING:
            self._abort(now)
        self._go_on(now)

    # Outputs.

    def deadline(self) -> Micros:
        """When to call `tick`; NEVER if the engine has stopped."""
        state = self.state
        if state.phase is Phase.STOPPED:
            return NEVER
        due = min(state.timers.deadline(), state.phase_ends, state.linger_until)
        due = min(due, suspects.deadline(state), state.begin_at)
        for link in state.links.values():
            due = min(due, link.wake_at or NEVER)
            if link.requests:
                due = min(due, link.requests[0].due)
                if link.is_fetch:
                    due = min(due, state.last_turn + leases.LONGEST_GAP)
        if state.phase is Phase.RUNNING:
            due = min(due, connecting.look_again_at(state, state.last_turn))
        return due

    def take(self) -> Outbox:
        """The effects since the last call."""
        out, self.state.out = self.state.out, Outbox()
        return out

    @property
    def is_stopped(self) -> bool:
        """Has the engine stopped? Handlers that still run have lost their jobs."""
        return self.state.phase is Phase.STOPPED

    # A turn.

    def _advance(self, now: Micros) -> None:
        """Process what is due at this time."""
        state = self.state
        if state.phase is Phase.STOPPED:
            return
        leases.note_pause(state, now)
        self._look_at_due(now)
        for link in list(state.links.values()):
            if link.requests and link.requests[0].due <= now and link.number in state.links:
                state.out.closes.append(link.number)
                self._on_lost(now, link)
        if now >= state.phase_ends:
            if state.phase is Phase.DRAINING:
                self._abort(now)
            else:
                self._end()

    def _look_at_due(self, now: Micros) -> None:
        state = self.state
        if state.timers.deadline() <= now:
            jobs = [job for job in state.timers.take(now) if state.jobs.get(job.id) is job]
            outcomes.give_back_waiting(state, now, leases.on_due(state, now, jobs))

    def _drain(self, now: Micros) -> None:
        state = self.state
        state.phase, state.phase_ends = Phase.DRAINING, now + state.settings.drain
        waiting = [job for job in state.jobs.values() if job.stage is WAITING]
        outcomes.give_back_waiting(state, now, waiting)

    def _abort(self, now: Micros) -> None:
        state = self.state
        state.phase, state.phase_ends = Phase.ABORTING, now + state.settings.abort
        for job in state.jobs.values():
            if job.stage is RUNNING:
                leases.cancel(state, job, Reason.SHUTDOWN)

    def _go_on(self, now: Micros) -> None:
        """Do what is possible now."""
        state = self.state
        if state.phase is Phase.STOPPED:
            return
        self._look_at_due(now)  # replies that have just arrived may be late
        if state.phase is Phase.RUNNING:
            connecting.choose_home(state, now)
        elif state.phase is not Phase.QUIET:
            fetching.release(state, now)
        suspects.look(state, now)
        fetching.start(state, now)
        outcomes.flush(state, now)
        beginning.send(state, now)
        fetching.ask(state, now)
        has_to_end = suspects.is_on(state) or fetching.is_stale(state, now)
        connecting.wake(state, now, has_to_end=has_to_end)
        state.last_turn = now
        is_stopping = state.phase in (Phase.DRAINING, Phase.ABORTING)
        if is_stopping and not state.jobs and not self._is_taking():
            self._end()

    def _is_taking(self) -> bool:
        return any(link.taking is not None for link in self.state.links.values())

    def _end(self) -> None:
        state = self.state
        state.phase = Phase.STOPPED
        state.out.drops += [Drop(id, Reason.SHUTDOWN) for id in state.held]
        for link in list(state.links.values()):
            connecting.close(state, link)

    # Connections.

    def _on_reply(self, now: Micros, link: Link, request: Request, reply: Reply) -> None:
        state, node = self.state, self.state.nodes[link.node]
        match request.verb:
            case Verb.FEATURES:
                self._on_features(now, link, node, reply)
            case Verb.NAME:
                link.client = reply if isinstance(reply, int) else None
            case Verb.TAKE:
                fetching.on_jobs(state, now, link, request, reply)
                if fetching.is_done(state, link, request, reply):
                    self._drain(now)
            case Verb.RENEW:
                leases.on_answer(state, now, request, reply)
            case Verb.REPORT | Verb.MIGRATE:
                outcomes.on_answer(state, now, node, request, reply)
            case Verb.BEGIN:
                pass  # WORKING reports whether the job still belongs to this worker
            case Verb.WAKE:
                connecting.on_woken(now, node, reply)

    def _on_features(self, now: Micros, link: Link, node: Node, reply: Reply) -> None:
        if words.code(reply):
            # The node is loading, or requires another password.
            self.state.out.closes.append(link.number)
            self._on_lost(now, link)
            return
        is_plain = self.state.settings.is_plain
        node.features = node.announced = frozenset() if is_plain else words.features(reply)
        self.state.linger_until = now
        connecting.answered(node)

    def _on_lost(self, now: Micros, link: Link) -> None:
        state, node = self.state, self.state.nodes[link.node]
        requests = list(link.requests)
        link.requests.clear()
        connecting.drop(state, link)
        connecting.rest(state, now, node)
        if link.is_fetch:
            leases.untie(state, now, link)
        for request in requests:
            if request.verb is Verb.RENEW:
                leases.on_lost_link(state, now, request)
            elif request.verb is Verb.BEGIN:
                beginning.on_lost_link(state, request)
            elif request.verb in (Verb.REPORT, Verb.MIGRATE):
                outcomes.on_lost_link(state, now, request)
        outcomes.on_lost_node(state, now, node)
