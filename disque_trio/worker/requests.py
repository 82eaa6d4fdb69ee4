"""Requests to add jobs: how they are encoded, sent, repeated and answered.

If a reply is lost, the job is added once more, with the same key in its body. If nodes reject it
because a node does not answer, it is added again until the other nodes consider that node failed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol

import attrs

from disque_trio.client.command import Command
from disque_trio.client.errors import DisqueError, LostError
from disque_trio.client.nodes import NoNodeError
from disque_trio.client.refusals import NotReplicatedError
from disque_trio.client.settings import OUTAGE_PAUSE_S, OUTAGE_S
from disque_trio.terminal.escapes import printable
from disque_trio.worker.codecs import Codecs
from disque_trio.worker.describing import type_and_text
from disque_trio.worker.enqueued import Enqueued, Follow, R_co, Wait
from disque_trio.worker.events import JobEnqueued
from disque_trio.worker.handles import Clients
from disque_trio.worker.hooks import Hooks
from disque_trio.worker.options import RESERVED, Place, without_own
from disque_trio.worker.runtime import runtime


class EnqueueUnknownError(DisqueError):
    """It is unknown whether the job was added: no reply arrived to the request, nor to its
    repetition if it was repeated; or `enqueue_many` was interrupted."""


class NotEnqueuedError(DisqueError):
    """A call was not added because of an error of a hook, of a codec, or of the call's options.
    That error is the cause."""


def not_enqueued(what: str, error: Exception) -> NotEnqueuedError:
    """The error of one call, for an error that is not a `DisqueError`."""
    found = NotEnqueuedError(f"{printable(what)} was not added: {type_and_text(error)}")
    found.__cause__ = error
    return found


class Producer(Clients, Protocol):
    """The app that adds a job: its clients, for the job's handle, and its hooks."""

    @property
    def hooks(self) -> Hooks:
        """Its hooks."""
        ...


@attrs.frozen
class Request(Generic[R_co]):
    """An ADDJOB command, with the fields for the job's handle and for hooks."""

    command: Command[str]
    key: str
    task: str
    queue: str
    repeat: bool
    steps: Sequence[Place] = ()
    wait: Wait[R_co] | None = None
    follow: Follow | None = None
    enqueuer: Producer = attrs.field(kw_only=True)
    unique: Place | None = None
    headers: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    is_encoded: bool = False
    """Have codecs encoded its body?"""

    def encoded(self, codecs: Codecs) -> "Request[R_co] | DisqueError":
        """The request with its body encoded by these codecs, or the error of a codec."""
        if self.is_encoded:
            return self
        command, seen = self.command, dict[bytes, bytes]()

        def encode(words: tuple[bytes, ...]) -> tuple[bytes, ...]:
            body = words[2]
            if body not in seen:
                seen[body] = codecs.encode(self.task, self.key, body)
            return (*words[:2], seen[body], *words[3:])

        try:
            plain = None if command.plain is None else encode(command.plain)
            command = attrs.evolve(command, words=encode(command.words), plain=plain)
        except DisqueError as error:
            return error
        except Exception as error:  # codecs of users may raise anything
            return not_enqueued(self.task, error)
        return attrs.evolve(self, command=command, is_encoded=True)

    def announce(self, id: str) -> None:
        """Call the hooks of `JobEnqueued` with this id."""
        if not self.enqueuer.hooks.wants_enqueued:
            return
        if not self.queue.startswith(RESERVED) and not self.task.startswith(RESERVED):
            own = without_own(self.headers)
            at = runtime().now()
            self.enqueuer.hooks.enqueued(
                JobEnqueued(
                    at=at, id=id, task=self.task, queue=self.queue, key=self.key, headers=own
                )
            )

    @property
    def repeated(self) -> "Request[R_co]":
        """The request for a repetition."""
        return attrs.evolve(self, command=attrs.evolve(self.command, is_repeatable=True))

    def result(self, answer: str | DisqueError, *, is_second: bool) -> "Result[R_co]":
        """The `Enqueued` or the error for an answer. `is_second` is true if the reply to an earlier
        request was lost."""
        if isinstance(answer, str):
            details = self.key, self.task, self.queue, self.wait, self.follow, self.steps
            places = (self.unique, *self.steps)
            return Enqueued(answer, *details, enqueuer=self.enqueuer, places=places)
        nothing_known = (LostError, NoNodeError) if is_second else (LostError,)
        return self.unknown(answer) if isinstance(answer, nothing_known) else answer

    def unknown(self, error: DisqueError) -> EnqueueUnknownError:
        """The error of a job whose outcome is unknown, caused by `error`."""
        key, task, queue = map(printable, (self.key, self.task, self.queue))
        found = EnqueueUnknownError(
            f"whether job {key} of {task} was added to {queue} is unknown: {error}"
        )
        found.__cause__ = error
        return found


Result = Enqueued[R_co] | DisqueError


class Exchange(Generic[R_co]):
    """Adds jobs together, without I/O: wait `pause_s` seconds, send `commands`, and pass their
    answers to `answered`, until no commands remain. An error in place of a request is the result of
    its job."""

    def __init__(self, asked: Sequence[Request[R_co] | DisqueError]) -> None:
        self._asked = asked
        self._left = {place: each for place, each in enumerate(asked) if isinstance(each, Request)}
        self._results: dict[int, Result[R_co]] = {
            place: each for place, each in enumerate(asked) if isinstance(each, DisqueError)
        }
        self._ends = runtime().monotonic() + OUTAGE_S
        self._lost: set[int] = set()  # the places of requests of which an answer was lost
        self.pause_s = 0.0

    @property
    def commands(self) -> list[Command[str]]:
        """The commands to send next."""
        return [request.command for request in self._left.values()]

    def failed(self, error: DisqueError) -> None:
        """No node has accepted the commands."""
        self.answered([error] * len(self._left))

    def answered(self, answers: Sequence[str | DisqueError]) -> None:
        """Process the answers of all commands, in order."""
        again: dict[int, Request[R_co]] = {}
        self.pause_s = 0.0
        for (place, request), answer in zip(self._left.items(), answers, strict=True):
            if request.repeat and isinstance(answer, LostError) and place not in self._lost:
                self._lost.add(place)
                again[place] = request.repeated
            elif request.repeat and _may_pass(answer) and runtime().monotonic() < self._ends:
                again[place], self.pause_s = request.repeated, OUTAGE_PAUSE_S
            else:
                self._results[place] = request.result(answer, is_second=place in self._lost)
        self._left = again

    def results(self) -> list[Result[R_co]]:
        """The result of each job, in order, when no commands remain. Calls the hooks of added
        jobs."""
        results = [self._results[place] for place in range(len(self._asked))]
        for request, result in zip(self._asked, results, strict=True):
            if isinstance(request, Request) and isinstance(result, Enqueued):
                request.announce(result.id)
        return results


def _may_pass(answer: str | DisqueError) -> bool:
    """Was the job rejected because of a node that does not answer and will soon be considered
    failed?"""
    return isinstance(answer, NotReplicatedError) and answer.may_pass
