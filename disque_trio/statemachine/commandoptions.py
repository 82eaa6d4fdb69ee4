"""The options of the commands other than ADDJOB, as rows of the same form.

The parsers, the usage, the tables of the manual, and the words that clients send are derived from
these rows.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from disque_trio.statemachine.base import LONGEST_PERIOD_S, MAX_RESULT, Millis
from disque_trio.statemachine.extensions import MAX_ERROR, MAX_REASON
from disque_trio.statemachine.joboptions import Option, in_words

MOST_LIMIT: Final = 1_000_000_000
Table = Mapping[bytes, Option]
"""Options by word, in the order of the usage."""


def _table(*rows: Option) -> Table:
    return {each.word: each for each in rows}


_COUNT: Final = b"ERR COUNT must be a number greater than zero"
_DELAY: Final = Option(
    word=b"DELAY",
    name="delay",
    usage="sec",
    most=LONGEST_PERIOD_S,
    has_decimals=True,
    meaning="the wait before the jobs are requeued, with up to three decimals; 0 is no wait",
)

_NOHANG: Final = Option(
    word=b"NOHANG",
    name="no_hang",
    usage="",
    meaning="do not wait: return null if there is nothing to return",
)
_TIMEOUT: Final = Option(
    word=b"TIMEOUT",
    name="wait",
    usage="ms",
    default="0",
    meaning="the longest wait; 0 means no limit",
)

GETJOB: Final = _table(
    _NOHANG,
    Option(
        word=b"WITHCOUNTERS",
        name="with_counters",
        usage="",
        meaning="add the counts of NACKs and of earlier deliveries",
    ),
    Option(
        word=b"WITHMETA",
        name="with_meta",
        usage="",
        feature="withmeta",
        meaning="add names and values, see below",
    ),
    Option(
        word=b"TIED",
        name="is_tied",
        usage="",
        feature="tied",
        meaning="the lease also ends with this connection: `tied-grace` milliseconds later (2000) "
        "the job is requeued, which counts as an additional delivery",
    ),
    Option(
        word=b"HELD",
        name="is_held",
        usage="",
        feature="held",
        needs=b"TIED",
        meaning="with TIED: the jobs are held until BEGIN",
    ),
    _TIMEOUT,
    Option(
        word=b"COUNT",
        name="count",
        least=1,
        error=_COUNT,
        default="1",
        meaning="take up to n jobs",
    ),
)
"""Queues may have these words as names (decision 21)."""
RELEASE: Final = _table(_DELAY)
NACK: Final = _table(
    _DELAY,
    Option(
        word=b"DEAD",
        name="dead",
        usage="[reason]",
        most=MAX_REASON,
        meaning="bury the jobs, with this reason",
    ),
    Option(
        word=b"ERROR",
        name="error",
        usage="text",
        most=MAX_ERROR,
        meaning="why the jobs have failed",
    ),
)
KEEP_RESULT: Final[Millis] = 3_600_000
"""How long a result is kept without KEEP, in milliseconds."""
ACKJOB: Final = _table(
    Option(
        word=b"RESULT",
        name="result",
        usage="value",
        most=MAX_RESULT,
        meaning="what has come of the job, of which there is only one then; up to "
        "`result-max-bytes` bytes",
    ),
    Option(
        word=b"KEEP",
        name="keep",
        usage="sec",
        most=LONGEST_PERIOD_S,
        has_decimals=True,
        least=1,
        default=str(KEEP_RESULT // 1000),
        needs=b"RESULT",
        meaning="with RESULT: how long the result is kept, with up to three decimals",
    ),
)
WAITJOB: Final = _table(
    _NOHANG,
    _TIMEOUT,
    Option(
        word=b"WITHRESULT",
        name="with_result",
        usage="",
        meaning="reply with an array: how the job has ended, and its result or null",
    ),
)
QSTAT: Final = _table(
    Option(
        word=b"UNQUEUED",
        name="has_unqueued",
        usage="",
        meaning="also report queues whose jobs are not enqueued here, such as delayed jobs only. "
        "Ours",
    )
)
PURGE: Final = _table(
    Option(word=b"DEAD", name="is_dead", usage="", meaning="the dead jobs"),
    Option(word=b"BCAST", name="is_bcast", usage="", meaning="on all nodes"),
)
COUNTED: Final = _table(
    Option(word=b"COUNT", name="count", least=1, error=_COUNT, meaning="enqueue up to n jobs")
)
"""The options of ENQUEUE QUEUE, and of REDRIVE of a queue."""
LIMIT: Final = _table(
    Option(
        word=b"CONCURRENCY",
        name="concurrency",
        least=1,
        most=MOST_LIMIT,
        meaning="at most n jobs are leased at the same time, at all nodes together",
    ),
    Option(
        word=b"RATE",
        name="rate",
        least=1,
        most=MOST_LIMIT,
        meaning="at most n jobs are delivered in PER, at all nodes together",
    ),
    Option(
        word=b"PER",
        name="period",
        usage="sec",
        least=1,
        most=LONGEST_PERIOD_S,
        has_decimals=True,
        needs=b"RATE",
        default="1",
        meaning="the time of RATE, with up to three decimals",
    ),
    Option(
        word=b"BURST",
        name="burst",
        least=1,
        most=MOST_LIMIT,
        needs=b"RATE",
        default="1",
        meaning="up to n jobs are delivered at once after a time without deliveries",
    ),
    Option(
        word=b"LOOSE",
        name="is_loose",
        usage="",
        meaning="nodes that cannot reach the others use the whole limits instead of their part",
    ),
    Option(
        word=b"GROUP-CONCURRENCY",
        name="group_concurrency",
        least=1,
        most=MOST_LIMIT,
        meaning="at most n jobs of each GROUP are leased at the same time, at all nodes together",
    ),
    Option(
        word=b"GROUP-RATE",
        name="group_rate",
        least=1,
        most=MOST_LIMIT,
        meaning="at most n jobs of each GROUP are delivered in GROUP-PER, at all nodes together",
    ),
    Option(
        word=b"GROUP-PER",
        name="group_period",
        usage="sec",
        least=1,
        most=LONGEST_PERIOD_S,
        has_decimals=True,
        needs=b"GROUP-RATE",
        default="1",
        meaning="the time of GROUP-RATE; PER behind GROUP-RATE is the same",
    ),
    Option(
        word=b"GROUP-BURST",
        name="group_burst",
        least=1,
        most=MOST_LIMIT,
        needs=b"GROUP-RATE",
        default="1",
        meaning="up to n jobs of a group are delivered at once after a time without deliveries; "
        "BURST behind GROUP-RATE is the same",
    ),
)
"""The options of QUEUE LIMIT."""


_BUSYLOOP: Final = Option(
    word=b"BUSYLOOP",
    name="is_busy_loop",
    usage="",
    meaning="return all of them in one call; the next cursor is then 0",
)


def _page(what: str) -> Option:
    return Option(
        word=b"COUNT",
        name="count",
        default="100",
        meaning=f"about n {what} per call, up to 20,000",
    )


QSCAN: Final = _table(
    _page("queues"),
    _BUSYLOOP,
    Option(word=b"MINLEN", name="minlen", meaning="only queues with at least n jobs here"),
    Option(word=b"MAXLEN", name="maxlen", meaning="only queues with at most n jobs here"),
    Option(
        word=b"IMPORTRATE",
        name="import_rate",
        meaning="only queues that import at least n jobs per second",
    ),
    Option(
        word=b"UNQUEUED",
        name="has_unqueued",
        usage="",
        feature="unqueued",
        meaning="also queues that have only jobs that are not queued, or dead ones",
    ),
    Option(
        word=b"REPLY",
        name="reply",
        usage="name|stat",
        default="name",
        meaning="`stat` includes figures of each queue",
    ),
)
JSCAN: Final = _table(
    _page("jobs"),
    _BUSYLOOP,
    Option(word=b"QUEUE", name="queue", usage="queue", meaning="only jobs of this queue"),
    Option(
        word=b"STATE",
        name="states",
        usage="state",
        is_repeatable=True,
        meaning="only jobs in this state (see SHOW), active jobs in one of the phases below, or, "
        "with `ended`, jobs that have ended; may be given several times",
    ),
    Option(word=b"GROUP", name="group", usage="name", meaning="only jobs of this group"),
    Option(word=b"KEY", name="key", usage="key", meaning="only jobs with this UNIQUE key"),
    Option(
        word=b"ERROR",
        name="error",
        usage="class",
        meaning="only jobs whose last error (NACK ERROR) has this class: the text before the first "
        "colon of its first line",
    ),
    Option(
        word=b"BODY",
        name="body",
        usage="text",
        meaning="only jobs whose body contains this text; bodies that are on disk do not match",
    ),
    Option(
        word=b"OLDER",
        name="older",
        usage="sec",
        meaning="only jobs that were added at least this many seconds ago",
    ),
    Option(
        word=b"YOUNGER",
        name="younger",
        usage="sec",
        meaning="only jobs that were added at most this many seconds ago",
    ),
    Option(
        word=b"REPLY",
        name="reply",
        usage="id|all|full",
        default="id",
        meaning="`id`: the ids; `all`: all fields of SHOW; `full`: these and the phase of active "
        "jobs as `phase`",
    ),
)


def usage(options: Table) -> str:
    """The options as the usage of their command shows them."""
    return " ".join(
        [f"[{each.form}{' ...' if each.is_repeatable else ''}]" for each in options.values()]
    )


def words(options: Table, values: Mapping[str, Any]) -> list[Any]:
    """The words of the options whose value is neither None nor False. The value of a repeatable
    option is a sequence of values."""
    pairs = [
        (option, value)
        for option in options.values()
        for value in (
            values.get(option.name, ()) if option.is_repeatable else (values.get(option.name),)
        )
    ]
    return in_words((each, value) for each, value in pairs if not (value is None or value is False))


def behind_from(queues: Iterable[bytes]) -> list[bytes]:
    """The queues, ordered so that GETJOB parses none as an option: those named like an option are
    first."""
    return sorted(queues, key=lambda name: name.upper() not in GETJOB)
