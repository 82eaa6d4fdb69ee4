"""The options of ADDJOB, as words and as values (original 2.2).

Of the original's options the last of each wins; ours may be given once.
"""

from collections.abc import Callable
from typing import Final

import attrs

from disque_trio.statemachine.base import (
    LONGEST_PERIOD_S,
    ORIGINAL_PERIOD_S,
    SYNTAX_ERROR,
    CommandError,
    Millis,
)
from disque_trio.statemachine.commands import backoff, unique
from disque_trio.statemachine.commands.parse import (
    Words,
    at_least,
    in_seconds,
    once,
    seconds_of_original,
)
from disque_trio.statemachine.suggestions import no_option

DEFAULT_TTL_S: Final = 86_400
MAX_DEFAULT_RETRY_S: Final = 300
_MAX_REPLICAS: Final = 65_535
AUTO: Final = 0
"""`Options.sync` of SYNC AUTO."""


@attrs.define
class Options:
    """The options as given; None where one is missing. RETRY and TTL in seconds."""

    replicas: int | None = None
    sync: int | None = None
    delay: Millis = 0
    retry: int | None = None
    ttl: int = DEFAULT_TTL_S
    maxlen: int | None = None
    is_async: bool = False
    priority: int | None = None
    limit: int | None = None
    backoff: Millis | None = None
    max_backoff: Millis | None = None
    unique: bytes | None = None
    keep: Millis | None = None
    if_exists: int | None = None

    @property
    def has_ours(self) -> bool:
        """Is there an option that the original does not have? A request without one is answered as
        there."""
        ours = (self.priority, self.limit, self.backoff, self.unique, self.sync)
        return any(each is not None for each in ours)

    def synced(self, replicas: int, default: int) -> int:
        """How many of the nodes that are to hold the job have confirmed it when ADDJOB is answered.
        `default` is `default-sync`."""
        wanted = 0 if self.is_async else self.sync or default
        if not wanted and self.sync == AUTO:
            wanted = replicas // 2 + 1
        return min(wanted or replicas, replicas)

    @property
    def longest_s(self) -> int:
        """The longest DELAY and RETRY."""
        return LONGEST_PERIOD_S if self.has_ours else ORIGINAL_PERIOD_S

    @property
    def retry_s(self) -> int:
        """RETRY, or its default. Without an option of ours it is within what original holders can
        count (original, defect 3)."""
        if self.retry is None:
            return min(max(self.ttl // 10, 1), MAX_DEFAULT_RETRY_S)
        return min(self.retry, self.longest_s)


def parse_options(words: list[bytes]) -> Options:
    """The options in any order and case. Raises CommandError."""
    options = Options()
    left = Words(words)
    for word in left:
        name = word.upper()
        if name == b"ASYNC":
            options.is_async = True
        elif name in _TAKES:
            _TAKES[name](options, name, left.value(name))
        else:
            raise CommandError(SYNTAX_ERROR + b": " + no_option(word, b"ADDJOB", NAMES))
    _check_delay(options)
    if options.has_ours and options.retry is not None and options.retry > LONGEST_PERIOD_S:
        raise CommandError(b"ERR RETRY must be at most %d seconds" % LONGEST_PERIOD_S)
    _check_sync(options)
    unique.check(options)
    if options.limit is not None and options.retry == 0:
        raise CommandError(
            SYNTAX_ERROR + b": LIMIT needs a RETRY above 0: with RETRY 0 a job is delivered once"
        )
    backoff.check(options)
    return options


def _check_sync(options: Options) -> None:
    if options.sync is None:
        return
    if options.is_async:
        raise CommandError(SYNTAX_ERROR + b": ASYNC waits for no copies, SYNC does: give one")
    if options.replicas is not None and options.sync > options.replicas:
        raise CommandError(
            SYNTAX_ERROR + b": SYNC %d is more than REPLICATE %d" % (options.sync, options.replicas)
        )


_NUMBERS: Final[dict[bytes, tuple[str, int, bytes]]] = {
    b"REPLICATE": ("replicas", 1, b"ERR REPLICATE must be between 1 and 65535"),
    b"TTL": ("ttl", 1, b"ERR TTL must be a number > 0"),
    b"RETRY": ("retry", 0, b"ERR RETRY time must be a non negative number"),
    b"MAXLEN": ("maxlen", 1, b"ERR MAXLEN must be a positive number"),
}
OURS: Final[dict[bytes, tuple[str, int, int]]] = {
    b"PRIORITY": ("priority", -100, 100),
    b"LIMIT": ("limit", 1, 10_000),
}
"""Options that are kept in extensions of the job."""
_BOUNDED: Final = {**OURS, b"SYNC": ("sync", 1, _MAX_REPLICAS)}


def _take_number(options: Options, name: bytes, word: bytes) -> None:
    """An option of the original."""
    field, least, error = _NUMBERS[name]
    value = at_least(word, least, error)
    if name == b"REPLICATE" and value > _MAX_REPLICAS:
        raise CommandError(b"%b: %d" % (error, value))
    setattr(options, field, value)


_BAD_DELAY: Final = b"ERR DELAY time must be a non negative number"


def _take_delay(options: Options, _name: bytes, word: bytes) -> None:
    options.delay = seconds_of_original(word, _BAD_DELAY)


def _check_delay(options: Options) -> None:
    if options.delay % 1000 and not options.has_ours:
        raise CommandError(
            b"%b: %b has decimals, for which an option must be there that the original does not "
            b"have, such as PRIORITY 0" % (_BAD_DELAY, in_seconds(options.delay))
        )


def _take_sync(options: Options, name: bytes, word: bytes) -> None:
    if word.upper() != b"AUTO":
        _take_ours(options, name, word)
        return
    once(options.sync, name)
    options.sync = AUTO


def _take_ours(options: Options, name: bytes, word: bytes) -> None:
    """An option of ours, whose value has a least and a largest one."""
    field, least, most = _BOUNDED[name]
    error = b"ERR %b must be a whole number from %d to %d" % (name, least, most)
    once(getattr(options, field), name)
    if not word:
        raise CommandError(error + b": '' is no whole number")
    setattr(options, field, at_least(word, least, error, most=most))


_TAKES: Final[dict[bytes, Callable[[Options, bytes, bytes], None]]] = {
    **dict.fromkeys(_NUMBERS, _take_number),
    b"DELAY": _take_delay,
    **dict.fromkeys(OURS, _take_ours),
    b"SYNC": _take_sync,
    **dict.fromkeys(backoff.OPTIONS, backoff.take),
    **dict.fromkeys(unique.OPTIONS, unique.take),
}
NAMES: Final = (*_TAKES, b"ASYNC")
