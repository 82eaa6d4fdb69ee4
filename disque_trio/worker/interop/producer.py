"""Adds jobs for workers of other systems."""

import secrets
from collections.abc import Mapping
from typing import Any, Unpack

import attrs

from disque_trio.worker.addjob import addjob
from disque_trio.worker.enqueue import Enqueuer
from disque_trio.worker.enqueued import Enqueued
from disque_trio.worker.interop import System
from disque_trio.worker.interop.payloads import write_payload
from disque_trio.worker.options import JobOptions, Options, with_changes
from disque_trio.worker.requests import Request


@attrs.frozen(eq=False, repr=False)
class Producer:
    """Adds jobs in the format of another system (`App.producer`)."""

    system: System
    _enqueuer: Enqueuer
    _defaults: Mapping[str, Any] = attrs.field(factory=dict)
    """Options of the app."""
    _named: Mapping[str, Any] = attrs.field(factory=dict)
    options: Options = attrs.field(init=False)

    @options.default
    def _settled(self) -> Options:
        return Options.of(self._defaults, self._named)

    def using(self, **options: Unpack[JobOptions]) -> "Producer":
        """A copy with these options; for Sidekiq, `key` is the jid. Raises `ValueError` for invalid
        options, and for `unique` and `headers`, which such a body cannot contain; `TypeError` for
        unknown options."""
        for name in ("unique", "headers"):
            if options.get(name):
                raise ValueError(f"a job of {self.system} has no {name}")
        if callable(options.get("group")):
            raise ValueError(f"the group of a job of {self.system} is a text")
        return attrs.evolve(self, named=with_changes(self._named, options))

    async def enqueue(self, name: str, *args: Any) -> Enqueued[Any]:
        """Add a job of the class with this name. Raises as `Task.enqueue`."""
        return await self._enqueuer.add(self._request(name, args))

    def enqueue_blocking(self, name: str, *args: Any) -> Enqueued[Any]:
        """The same, with the client of this thread."""
        return self._enqueuer.add_blocking(self._request(name, args))

    def _request(self, name: str, args: tuple[Any, ...]) -> Request[Any]:
        options = self.options
        key = options.key or secrets.token_hex(12)
        body = write_payload(
            self.system,
            name,
            args,
            key=key,
            queue=options.queue,
            max_body=self._enqueuer.max_body,
        )
        return Request(
            addjob(options, lambda _: body),
            key,
            name,
            options.queue,
            options.repeat,
            enqueuer=self._enqueuer,
        )
