"""The options of the commands that take jobs and give them back: rows like those of ADDJOB.

From the rows follow the parsers, the usage, the tables of the manual, and what clients send.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from disque_trio.statemachine.base import LONGEST_PERIOD_S, MAX_RESULT, Millis
from disque_trio.statemachine.extensions import MAX_ERROR, MAX_REASON
from disque_trio.statemachine.joboptions import Option, in_words

Table = Mapping[bytes, Option]
"""By word, in the order of the usage."""


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
"""Queues may be named like these words (decision 21)."""
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
"""For how long a result is kept without KEEP."""
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
        meaning="also of a queue of which no job is enqueued",
    )
)
PURGE: Final = _table(
    Option(word=b"DEAD", name="is_dead", usage="", meaning="the dead jobs"),
    Option(word=b"BCAST", name="is_bcast", usage="", meaning="on all nodes"),
)
COUNTED: Final = _table(
    Option(word=b"COUNT", name="count", least=1, error=_COUNT, meaning="enqueue up to n jobs")
)
"""Of ENQUEUE QUEUE, and of REDRIVE of a queue."""


def usage(options: Table) -> str:
    """The options as they stand in the usage of their command."""
    return " ".join([f"[{each.form}]" for each in options.values()])


def words(options: Table, values: Mapping[str, Any]) -> list[Any]:
    """The words of the options whose value is neither None nor False."""
    given = [(each, values.get(each.name)) for each in options.values()]
    return in_words((each, value) for each, value in given if not (value is None or value is False))


def behind_from(queues: Iterable[bytes]) -> list[bytes]:
    """The queues in an order in which none is taken for an option: those named like one first."""
    return sorted(queues, key=lambda name: name.upper() not in GETJOB)
