"""ADDJOB BACKOFF: how long a NACK without DELAY waits (docs/bus.md, "NACK with a delay")."""

from typing import Final, Protocol

from disque_trio.statemachine.base import LONGEST_PERIOD_S, SYNTAX_ERROR, CommandError, Millis
from disque_trio.statemachine.commands.parse import once, seconds

OPTIONS: Final = (b"BACKOFF", b"MAXBACKOFF")
MAX_BACKOFF: Final[Millis] = 3_600_000
"""The default of MAXBACKOFF; BACKOFF if that is longer."""


class Given(Protocol):
    """The options of ADDJOB that concern back-off; None where one is missing."""

    retry: int | None
    backoff: Millis | None
    max_backoff: Millis | None


def take(options: Given, name: bytes, word: bytes) -> None:
    """Take in one of the options. Raises CommandError for a bad value, and for a second one."""
    if name == b"BACKOFF":
        once(options.backoff, name)
        options.backoff = seconds(word, name, most_s=LONGEST_PERIOD_S)
    else:
        once(options.max_backoff, name)
        options.max_backoff = seconds(word, name, most_s=LONGEST_PERIOD_S)


def check(options: Given) -> None:
    """Refuse what contradicts itself."""
    backoff, most = options.backoff, options.max_backoff
    if backoff is None:
        if most is not None:
            raise CommandError(SYNTAX_ERROR + b": MAXBACKOFF needs BACKOFF sec")
        return
    if most is not None and most < backoff:
        raise CommandError(
            b"ERR MAXBACKOFF must not be shorter than BACKOFF: BACKOFF is %d ms, MAXBACKOFF %d ms"
            % (backoff, most)
        )
    if options.retry == 0:
        raise CommandError(
            b"ERR BACKOFF needs RETRY above 0: a job with RETRY 0 is never queued again"
        )


def longest(options: Given) -> Millis:
    """The limit of a job with BACKOFF; 0 for others."""
    if not options.backoff:
        return 0
    return options.max_backoff or max(options.backoff, MAX_BACKOFF)
