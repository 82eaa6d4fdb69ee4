"""The job of a request: the options of an ADDJOB, with the defaults of a cluster."""

import os
from collections.abc import Sequence

import attrs

from disque_trio.explain.facts import Facts
from disque_trio.statemachine.base import CommandError, Millis
from disque_trio.statemachine.commands.addjob import check_periods
from disque_trio.statemachine.commands.addoptions import parse_options
from disque_trio.statemachine.extensions import NO_EXTENSIONS, Extensions, needs_of
from disque_trio.statemachine.joboptions import DEFAULT_TTL_S, WAYS


class InvalidRequestError(Exception):
    """Nodes refuse this ADDJOB, or it is not an ADDJOB; the text has the reason."""


@attrs.frozen(kw_only=True)
class JobRequest:
    """One ADDJOB. Times are in seconds unless they are `Millis`."""

    queue: str = "queue"
    copies: int
    """The number of nodes that hold the job: REPLICATE, or its default."""
    sync: int = 0
    """SYNC; 0 is all copies."""
    retry: int
    delay: Millis = 0
    ttl: int = DEFAULT_TTL_S
    timeout: Millis = 0
    maxlen: int | None = None
    is_async: bool = False
    if_exists: str = "return"
    extensions: Extensions = NO_EXTENSIONS
    """The options that copies of the job have beyond the original's record."""

    @property
    def confirmed(self) -> int:
        """The number of nodes that hold it when ADDJOB returns."""
        return self.sync or self.copies

    @property
    def is_ours(self) -> bool:
        """Does it have options or times that the original does not support?"""
        is_long = needs_of(self.delay, self.retry * 1000, None) != 0
        return is_long or self.extensions != NO_EXTENSIONS

    @property
    def comes_back(self) -> bool:
        """Is there a requeue before the TTL ends?"""
        return self.retry > 0 and self.delay / 1000 + self.retry < self.ttl


def read(words: Sequence[str], facts: Facts) -> JobRequest:
    """The job of `ADDJOB queue body ms-timeout [options]`. Raises `InvalidRequestError`."""
    if len(words) < 4 or words[0].upper() != "ADDJOB":
        raise InvalidRequestError(
            "only ADDJOB queue body ms-timeout [options] can be explained, such as "
            f"ADDJOB mail body 0 RETRY 60; not '{' '.join(words)}'"
        )
    if not words[3].isdecimal():
        raise InvalidRequestError(
            f"ms-timeout is a number of milliseconds, 0 for ever; not '{words[3]}'"
        )
    try:
        options = parse_options([os.fsencode(word) for word in words[4:]])
        places = min(facts.default_replicate, facts.nodes + facts.silent)
        copies = options.replicate or max(places, options.sync or 1)
        check_periods(options, copies)
    except CommandError as error:
        raise InvalidRequestError(error.text.decode(errors="replace")) from None
    confirmed = options.synced(copies, facts.default_sync)
    return JobRequest(
        queue=words[1],
        copies=copies,
        sync=0 if confirmed == copies else confirmed,
        retry=options.retry_s,
        delay=options.delay,
        ttl=options.ttl,
        timeout=int(words[3]),
        maxlen=options.maxlen,
        is_async=options.is_async,
        if_exists=WAYS[options.if_exists or 0].decode(),
        extensions=options.extensions or NO_EXTENSIONS,
    )
