"""What is said of an option that there is not: the nearest one, or what is so here instead of it.

Many of those that people try are of Spark's Kafka source and sink.
"""

import difflib
from collections.abc import Sequence
from typing import Final

_SAME: Final = {
    "kafka.bootstrap.servers": "nodes",
    "subscribe": "queue",
    "topic": "queue",
    "maxoffsetspertrigger": "maxJobsPerTrigger",
}
_BEGIN: Final = "a stream begins with the enqueued jobs; acknowledged jobs cannot be read"
_END: Final = (
    "a stream does not end; trigger(availableNow=True) reads what is enqueued at its start"
)
_GROUP: Final = "all readers of a queue share its jobs; each job is delivered to one of them"
_ONE: Final = "a stream reads one queue, that of option queue"
_OTHER: Final = {
    "startingoffsets": _BEGIN,
    "startingoffsetsbytimestamp": _BEGIN,
    "startingtimestamp": _BEGIN,
    "endingoffsets": _END,
    "endingoffsetsbytimestamp": _END,
    "endingtimestamp": _END,
    "group.id": _GROUP,
    "kafka.group.id": _GROUP,
    "groupidprefix": _GROUP,
    "subscribepattern": _ONE,
    "assign": _ONE,
    "minpartitions": "jobsPerPartition says how many jobs a task has at most: fewer jobs make more "
    "partitions",
    "includeheaders": "jobs have no headers",
}


def hint(name: str, names: Sequence[str]) -> str:
    """The end of the sentence, for options with these names."""
    lower = {each.lower(): each for each in names}
    if reason := _OTHER.get(name.lower()):
        return f": {reason}"
    close = difflib.get_close_matches(name.lower(), lower, 1, 0.5)
    meant = _SAME.get(name.lower()) or (lower[close[0]] if close else "")
    return f"; did you mean {meant}?" if meant else f": there are {', '.join(names)}"
