"""The options of ADDJOB (original 2.2), one row each. Those of other commands are in
`commandoptions`.

The parser, the usage, the manual's table, the words that clients and the simulator send, the keys
of scenarios, and the options and columns of the Spark sink are derived from these rows.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import (
    LONGEST_PERIOD_S,
    MAX_INTEGER,
    ORIGINAL_PERIOD_S,
    SYNTAX_ERROR,
    CommandError,
    Millis,
)
from disque_trio.statemachine.extensions import MAX_GROUP, NO_EXTENSIONS, Extensions

DEFAULT_TTL_S: Final = 86_400
MAX_DEFAULT_RETRY_S: Final = 300
MAX_BACKOFF: Final[Millis] = 3_600_000
"""The default of MAXBACKOFF, unless BACKOFF is longer."""
AUTO: Final = 0
"""`Options.sync` of SYNC AUTO."""
WAYS: Final = (b"return", b"reject", b"again", b"replace")
"""The values of IFEXISTS; the index of each is its code (`keys.RETURN` and so on)."""
_MAX_REPLICAS: Final = 65_535
_MAX_TTL_S: Final = (1 << 32) - 1


@attrs.frozen(kw_only=True)
class Option:
    """One option."""

    word: bytes
    name: str
    """The field of `Options`, the argument of the client and, but for ASYNC, the scenario key."""
    usage: str = "n"
    """The placeholder of its value: `sec` and `ms` are times, `n` is another number; empty for a
    flag."""
    least: int = 0
    most: int = MAX_INTEGER
    """The range of a number, or of the length of a text in bytes. For RETRY and TTL the original
    accepts more, and reduces it to the largest value that it supports."""
    has_decimals: bool = False
    """Is it a time with up to three decimals? `Options` has it in milliseconds."""
    error: bytes = b""
    """The original's error for an invalid value; empty for an option that the original does not
    have. Such an option may be given only once; if one of the original's is repeated, the last
    applies."""
    is_repeatable: bool = False
    """May it be given several times, each with one of its values?"""
    needs: bytes = b""
    """The option that it requires; empty for none."""
    needs_retry: bool = False
    """Is it refused with RETRY 0?"""
    extension: str = ""
    """The field of `Extensions` with its value; empty for none."""
    feature: str = ""
    """Clients send it only to nodes that have this feature; empty for any node."""
    default: str = ""
    meaning: str
    """Text of the manual, in Markdown, as is `default`."""

    @property
    def text(self) -> str:
        """The word."""
        return self.word.decode()

    @property
    def is_ours(self) -> bool:
        """Is it an option that the original does not have?"""
        return not self.error and self.usage != ""

    @property
    def is_time(self) -> bool:
        """Is its value a number of seconds?"""
        return self.usage == "sec"

    @property
    def is_number(self) -> bool:
        """Is its value a number?"""
        return self.is_time or self.usage.partition("|")[0] == "n"

    @property
    def is_text(self) -> bool:
        """Is its value arbitrary bytes? Trace rows have a CRC-32 in its place."""
        return self.usage in ("key", "name", "text")

    @property
    def planned(self) -> str:
        """The field of a simulated ADDJOB (`sim.scenarios.plan.Add`)."""
        return f"{self.name}_s" if self.is_time else self.name

    @property
    def shown(self) -> str:
        """Its name in SHOW."""
        return self.extension.replace("_", "-")

    @property
    def form(self) -> str:
        """The word with the placeholder of its value."""
        return f"{self.text} {self.usage}".rstrip()


OPTIONS: Final = (
    Option(
        word=b"REPLICATE",
        name="replicate",
        least=1,
        most=_MAX_REPLICAS,
        error=b"ERR REPLICATE must be between 1 and 65535",
        default="3, or the size of the cluster if it is smaller; with `workers`, its number of "
        "machines",
        meaning="the number of nodes that hold the job, 1 to 65535. Without SYNC, all of them "
        "confirm it before ADDJOB returns. The default counts nodes that are down, so use SYNC 2 "
        "in a cluster of three",
    ),
    Option(
        word=b"SYNC",
        name="sync",
        usage="n|AUTO",
        least=1,
        most=_MAX_REPLICAS,
        default="the value of REPLICATE",
        meaning="the number of nodes that must confirm the job before ADDJOB returns, at most "
        "REPLICATE. The other replicas follow in the background, and are re-created if they are "
        "lost. `AUTO` is `default-sync`, or if that is 0 a majority: 2 of 3, 2 of 2, 1 of 1. Ours",
    ),
    Option(
        word=b"DELAY",
        name="delay",
        usage="sec",
        most=LONGEST_PERIOD_S,
        has_decimals=True,
        error=b"ERR DELAY time must be a non negative number",
        default="0",
        meaning="seconds until the job is enqueued, less than TTL and at most 2,147,483. With an "
        "option marked as ours, such as PRIORITY 0, at most ten years (316,224,000), and with up "
        "to three decimals",
    ),
    Option(
        word=b"RETRY",
        name="retry",
        usage="sec",
        most=LONGEST_PERIOD_S,
        error=b"ERR RETRY time must be a non negative number",
        default="a tenth of TTL, at least 1, at most 300",
        meaning="seconds after a delivery until a job that is not acknowledged is requeued, up to "
        "half a second earlier or later. 0 is at-most-once delivery, and requires REPLICATE 1. "
        "Longer values are reduced to 2,147,483; with an option marked as ours, up to ten years "
        "are possible",
    ),
    Option(
        word=b"TTL",
        name="ttl",
        usage="sec",
        least=1,
        most=_MAX_TTL_S,
        error=b"ERR TTL must be a number > 0",
        default=f"{DEFAULT_TTL_S}",
        meaning="seconds after which the job expires, acknowledged or not; up to a second later on "
        "other nodes, whose replicas count whole seconds",
    ),
    Option(
        word=b"MAXLEN",
        name="maxlen",
        least=1,
        error=b"ERR MAXLEN must be a positive number",
        meaning="refuse the job if its queue has n jobs or more on this node",
    ),
    Option(
        word=b"PRIORITY",
        name="priority",
        least=-100,
        most=100,
        extension="priority",
        default="0",
        meaning="−100 to 100; jobs of a queue with a higher priority are delivered first, then "
        "the oldest. Ours",
    ),
    Option(
        word=b"GROUP",
        name="group",
        usage="name",
        least=1,
        most=MAX_GROUP,
        extension="group",
        meaning="the tenant, customer or host of the job, 1 to 256 bytes. Within one priority a "
        "node delivers the groups of a queue in turn, one job each. Ours",
    ),
    Option(
        word=b"LIMIT",
        name="limit",
        least=1,
        most=10_000,
        needs_retry=True,
        extension="limit",
        meaning="1 to 10000. After n deliveries without an acknowledgement the job is *dead*: it "
        "is kept, and not delivered (see REDRIVE). Requires a RETRY above 0. Ours",
    ),
    Option(
        word=b"UNIQUE",
        name="unique",
        usage="key",
        extension="key",
        meaning="add the job only if no other job of its queue has this key, up to 256 bytes. An "
        "empty key means the SHA-256 of the body. Ours",
    ),
    Option(
        word=b"KEEP",
        name="keep",
        usage="sec",
        least=1,
        most=LONGEST_PERIOD_S,
        has_decimals=True,
        needs=b"UNIQUE",
        extension="keep",
        meaning="seconds for which the key stays taken after the job has ended, with up to three "
        "decimals",
    ),
    Option(
        word=b"IFEXISTS",
        name="if_exists",
        usage="return|reject|again|replace",
        needs=b"UNIQUE",
        default="return",
        meaning="what to do if another job has the key. `return`: return its id. `reject`: reply "
        "`-DUPLICATE id state`. `again`: if a worker has the other job, add this one, to be "
        "enqueued when the other has ended; otherwise as `return`. `replace`: if the other was "
        "never delivered, replace it by this one; otherwise as `return`",
    ),
    Option(
        word=b"BACKOFF",
        name="backoff",
        usage="sec",
        least=1,
        most=LONGEST_PERIOD_S,
        has_decimals=True,
        needs_retry=True,
        extension="backoff",
        meaning="the wait before the job is requeued after a NACK without DELAY: `sec` for the "
        "first NACK, doubled for each earlier NACK; varied at random by up to 20 %, and at most "
        "half of the job's remaining life. Up to three decimals. Ours",
    ),
    Option(
        word=b"MAXBACKOFF",
        name="max_backoff",
        usage="sec",
        least=1,
        most=LONGEST_PERIOD_S,
        has_decimals=True,
        needs=b"BACKOFF",
        extension="max_backoff",
        default="3600, or BACKOFF if that is longer",
        meaning="the maximum of this wait, before the random variation",
    ),
    Option(
        word=b"ASYNC",
        name="is_async",
        usage="",
        meaning="return at once; replicas are sent without waiting for confirmation",
    ),
)
"""The options in the order of the usage, and of the words that clients send."""
CARRIED: Final = [each for each in OPTIONS if each.extension]
"""The options that are fields of `Extensions`."""
OF_ONE_JOB: Final = {each.word: each for each in CARRIED if each.is_text}
"""The options whose values usually differ from job to job: GROUP and UNIQUE."""
BY_WORD: Final = {each.word: each for each in OPTIONS}


@attrs.define
class Options:
    """The options of one ADDJOB; None if not given. RETRY and TTL are in seconds."""

    replicate: int | None = None
    sync: int | None = None
    delay: Millis = 0
    retry: int | None = None
    ttl: int = DEFAULT_TTL_S
    maxlen: int | None = None
    is_async: bool = False
    priority: int | None = None
    group: bytes | None = None
    limit: int | None = None
    backoff: Millis | None = None
    max_backoff: Millis | None = None
    unique: bytes | None = None
    keep: Millis | None = None
    if_exists: int | None = None

    @property
    def has_ours(self) -> bool:
        """Is there an option that the original does not have? Requests without one behave as in the
        original."""
        return any(getattr(self, name) is not None for name in _OURS)

    def synced(self, replicas: int, default: int) -> int:
        """How many nodes must confirm the job before ADDJOB replies. `default` is
        `default-sync`."""
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
        """RETRY in seconds, or its default. Without an option of ours, it is limited to the longest
        period that original nodes support (original, defect 3)."""
        if self.retry is None:
            return min(max(self.ttl // 10, 1), MAX_DEFAULT_RETRY_S)
        return min(self.retry, self.longest_s)

    @property
    def carried(self) -> dict[str, Any]:
        """The fields of `extensions` that these options set."""
        found: dict[str, Any] = {}
        for option in CARRIED:
            value = getattr(self, option.name)
            if value is not None:
                found[option.extension] = value
        if self.backoff:
            found.setdefault("max_backoff", max(self.backoff, MAX_BACKOFF))
        return found

    @property
    def extensions(self) -> Extensions | None:
        """The extensions of a job with these options; None for a plain job."""
        extensions = Extensions(**self.carried)
        return None if extensions == NO_EXTENSIONS else extensions

    def check(self) -> None:
        """Raise CommandError if options contradict each other."""
        if self.retry is not None and self.retry > LONGEST_PERIOD_S and self.has_ours:
            raise CommandError(b"ERR RETRY must be at most %d seconds" % LONGEST_PERIOD_S)
        if self.sync is not None:
            self._check_sync(self.sync)
        for option in _NEEDING:
            other = BY_WORD[option.needs]
            if getattr(self, option.name) is not None and getattr(self, other.name) is None:
                raise CommandError(SYNTAX_ERROR + f": {option.text} needs {other.form}".encode())
        if self.retry == 0 and self.limit is not None:
            raise CommandError(
                SYNTAX_ERROR
                + b": LIMIT needs a RETRY above 0: with RETRY 0 a job is delivered once"
            )
        if self.backoff is not None:
            self._check_backoff(self.backoff)

    def _check_sync(self, sync: int) -> None:
        if self.is_async:
            raise CommandError(SYNTAX_ERROR + b": ASYNC waits for no copies, SYNC does: give one")
        if self.replicate is not None and sync > self.replicate:
            raise CommandError(
                SYNTAX_ERROR + b": SYNC %d is more than REPLICATE %d" % (sync, self.replicate)
            )

    def _check_backoff(self, backoff: Millis) -> None:
        most = self.max_backoff
        if most is not None and most < backoff:
            raise CommandError(
                b"ERR MAXBACKOFF must not be shorter than BACKOFF: BACKOFF is %d ms, MAXBACKOFF "
                b"%d ms" % (backoff, most)
            )
        if self.retry == 0:
            raise CommandError(
                b"ERR BACKOFF needs RETRY above 0: a job with RETRY 0 is never queued again"
            )


_OURS: Final = [each.name for each in OPTIONS if each.is_ours and not each.needs]
_NEEDING: Final = [each for each in OPTIONS if each.needs]


def decimals(time: float) -> str:
    """Seconds with three decimals; without decimals if they are all 0, as original nodes
    require."""
    return f"{time:.3f}".removesuffix(".000")


def option_values(values: Mapping[str, Any]) -> Iterator[tuple[Option, Any]]:
    """The options with values, from values by option name; times are in seconds. Adds PRIORITY 0 to
    decimals and long periods, which a node accepts only with an option of ours."""
    delay, retry = values.get("delay") or 0, values.get("retry") or 0
    is_plain = float(delay).is_integer() and max(delay, retry) <= ORIGINAL_PERIOD_S
    for option in OPTIONS:
        value = values.get(option.name)
        if value is None and option.name == "priority" and not is_plain:
            value = 0
        if value is not None and (option.usage or value):
            yield option, value


def words(values: Mapping[str, Any]) -> list[Any]:
    """The words of `option_values`. Only times are formatted; other values are unchanged."""
    return in_words(option_values(values))


def in_words(pairs: Iterable[tuple[Option, Any]]) -> list[Any]:
    """The words of these options with their values."""
    found: list[Any] = []
    for option, value in pairs:
        found.append(option.word)
        if option.usage:
            found.append(decimals(value) if option.is_time else value)
    return found
