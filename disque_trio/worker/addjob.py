"""Builds the ADDJOB command of a job from its body and options."""

import math
from collections.abc import Callable, Mapping
from inspect import unwrap
from typing import Final

import attrs

from disque_trio.client import commands
from disque_trio.client.command import Command
from disque_trio.statemachine.base import ORIGINAL_PERIOD_S
from disque_trio.worker.options import Options
from disque_trio.worker.runtime import runtime

LONG: Final = "long-periods"
"""The feature of nodes that accept a DELAY longer than that of the original."""
_ADDJOB: Final[Callable[..., Command[str]]] = unwrap(commands.addjob)  # `Options` has checked
Body = Callable[[Mapping[str, float]], bytes]
"""Builds the body, with these additional headers."""


def addjob(
    options: Options, body: Body, unique: str | None = None, keep: float | None = None
) -> Command[str]:
    """The ADDJOB command that adds the body with these options.

    Earlier versions and the original accept a DELAY of at most 24.8 days. If the delay is longer,
    they receive that maximum, and the body contains the due time: a worker that receives the job
    too early snoozes it.
    """
    now = runtime().now()
    delay, ttl = options.times(now)
    command = _addjob(options, body({}), unique, keep, delay, ttl)
    if delay <= ORIGINAL_PERIOD_S:  # the usual case
        return command
    early = body({"due": now + delay, "hops": math.ceil(delay / ORIGINAL_PERIOD_S) - 1})
    plain = _addjob(options, early, unique, keep, ORIGINAL_PERIOD_S, ttl).plain
    return attrs.evolve(command, plain=plain, features=(*command.features, LONG))


def _addjob(
    options: Options,
    body: bytes,
    unique: str | None,
    keep: float | None,
    delay: float,
    ttl: int,
) -> Command[str]:
    make = _ADDJOB if unique is None and keep is None else commands.addjob
    return make(
        options.queue,
        body,
        delay=delay,
        retry=options.lease,
        replicate=1 if options.lease == 0 else options.replicate,
        sync=None if options.lease == 0 else options.copies.awaited,
        ttl=ttl,
        maxlen=options.maxlen,
        priority=options.priority,
        group=options.group if isinstance(options.group, str) else None,
        unique=unique,
        keep=keep,
        if_exists=None if unique is None else options.on_conflict,
    )
