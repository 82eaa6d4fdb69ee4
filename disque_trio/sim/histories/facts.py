"""The contents of a history by job: its ADDJOBs, its deliveries, and the commands about it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import takewhile
from typing import Final

import attrs

from disque_trio.sim.histories.records import ENDLESS, Call, History, Seconds
from disque_trio.statemachine.commandoptions import ACKJOB, NACK, RELEASE
from disque_trio.statemachine.joboptions import BY_WORD, DEFAULT_TTL_S, MAX_DEFAULT_RETRY_S
from disque_trio.tracing.client_rows import is_doubtful
from disque_trio.tracing.histories import DIGEST

OF_JOBS: Final = (
    "ACKJOB", "FASTACK", "WORKING", "NACK", "RELEASE", "BEGIN", "ENQUEUE", "DEQUEUE", "DELJOB",
)  # fmt: skip
ENDING: Final = ("ACKJOB", "FASTACK", "DELJOB")
_OF_QUEUES: Final = ("PURGE", "REDRIVE", "PAUSE", "CANCEL")
_OPTIONS: Final = {"ACKJOB": ACKJOB, "NACK": NACK, "RELEASE": RELEASE}
"""The options that follow the job ids in these commands."""
_ID_LENGTH: Final = 40


@attrs.define(eq=False, kw_only=True)
class Add:
    """An ADDJOB."""

    call: Call
    queue: str
    body: str
    options: Mapping[str, str]
    """By lower-case name; ``""`` for a flag. Unknown options are included."""
    id: str = ""
    """The id that it returned."""
    named: str = ""
    """The id that -DUPLICATE named."""
    is_unknown: bool = False
    """May it have added a job that it did not return?"""

    @property
    def begin(self) -> Seconds:
        """When it was sent."""
        return self.call.begin

    @property
    def end(self) -> Seconds:
        """When its reply arrived; `ENDLESS` if none did."""
        return self.call.end

    def seconds(self, name: str, default: Seconds) -> Seconds:
        """Return the value of a numeric option, or the default if it is missing or no number."""
        try:
            return float(self.options.get(name) or default)
        except ValueError:
            return default

    @property
    def ttl(self) -> Seconds:
        """The job's TTL."""
        return self.seconds("ttl", DEFAULT_TTL_S)

    @property
    def retry(self) -> Seconds:
        """RETRY, explicit or by default."""
        if "retry" in self.options:
            return self.seconds("retry", 0)
        return min(max(self.ttl // 10, 1), MAX_DEFAULT_RETRY_S)

    @property
    def copies(self) -> int:
        """The number of nodes that certainly have the job at the reply; 1 if there is no such
        option."""
        if "async" in self.options:
            return 1
        return int(self.seconds("sync", 0) or self.seconds("replicate", 1))

    @property
    def key(self) -> str | None:
        """The job's key (an empty key stands for the digest of the body), or None."""
        key = self.options.get("unique")
        if key != "":
            return key
        if self.body.startswith(DIGEST):
            return self.body.removeprefix(DIGEST)
        return sha256(self.body.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def if_exists(self) -> str:
        """The value of IFEXISTS."""
        return self.options.get("ifexists", "return").lower()


@attrs.frozen(eq=False, kw_only=True)
class Delivery:
    """A job in the reply to a GETJOB."""

    call: Call
    queue: str
    id: str
    body: str

    @property
    def begin(self) -> Seconds:
        """When GETJOB was sent: the job was not delivered before."""
        return self.call.begin

    @property
    def end(self) -> Seconds:
        """When the reply arrived."""
        return self.call.end


@attrs.frozen(eq=False, kw_only=True)
class JobReport:
    """A command of a client about a job."""

    call: Call
    delay: Seconds = 0.0
    """DELAY of NACK and RELEASE."""
    is_dead: bool = False
    """Does it bury the job?"""

    @property
    def command(self) -> str:
        """The name of the command."""
        return self.call.command

    @property
    def last(self) -> Seconds:
        """The latest time at which the command may have taken effect: its reply, or when the client
        gave up."""
        return self.call.end if self.call.end < ENDLESS else self.call.lost_at


@attrs.define(eq=False)
class Job:
    """The history of a job, as clients observed it."""

    id: str
    adds: list[Add] = attrs.Factory(list)
    """The ADDJOBs that returned it: at most one if it has no key."""
    deliveries: list[Delivery] = attrs.Factory(list)
    reports: list[JobReport] = attrs.Factory(list)

    @property
    def queue(self) -> str:
        """Its queue."""
        found: Sequence[Add | Delivery] = self.adds or self.deliveries
        return found[0].queue if found else ""

    @property
    def is_at_most_once(self) -> bool:
        """Is its RETRY 0? Then the last digit of its id is even (original 3.3)."""
        return self.id[-1] in "02468ace"

    @property
    def is_plain(self) -> bool:
        """Has it only options that do not affect when and where it is queued?"""
        plain = {"replicate", "sync", "retry", "ttl", "priority", "async", "maxlen"}
        return len(self.adds) == 1 and plain.issuperset(self.adds[0].options)

    def reports_of(self, *commands: str) -> Iterator[JobReport]:
        """Yield the commands of these names about the job."""
        return (each for each in self.reports if each.command in commands)


@attrs.define(eq=False)
class Facts:
    """A history by jobs, queues and keys."""

    history: History
    adds: list[Add] = attrs.Factory(list)
    jobs: dict[str, Job] = attrs.Factory(dict)
    gets: list[Call] = attrs.Factory(list)
    queue_calls: dict[str, list[Call]] = attrs.Factory(dict)
    """By queue: PURGE, REDRIVE, PAUSE and CANCEL."""
    waits: list[Call] = attrs.Factory(list)
    """All WAITJOBs."""
    redriven: set[str] = attrs.Factory(set)
    """Jobs that REDRIVE named."""

    def job(self, id: str) -> Job:
        """Return the job with this id."""
        found = self.jobs.get(id)
        if found is None:
            found = self.jobs[id] = Job(id)
        return found

    def has_call(self, queue: str, *commands: str, since: Seconds = -math.inf) -> bool:
        """Was one of these commands sent about the queue, and may it have taken effect after
        `since`? Other nodes learn of it later: in calm within the slack, otherwise at any time."""
        return any(
            call.command in commands
            and not (
                call.end + self.history.limits.slack < since
                and self.history.is_calm(call.begin, since)
            )
            for call in self.queue_calls.get(queue, ())
        )

    def may_be_redriven(self, job: Job) -> bool:
        """Did a client send REDRIVE for the job, or for its queue since the job was added?"""
        since = min((add.begin for add in job.adds), default=-math.inf)
        return job.id in self.redriven or self.has_call(job.queue, "REDRIVE", since=since)


def facts_of(history: History) -> Facts:
    """Return the facts in the calls of a history."""
    facts = Facts(history)
    for call in history.calls:
        command = call.command
        if command == "ADDJOB" and len(call.request) > 3:
            _add(facts, call)
        elif command == "GETJOB":
            _get(facts, call)
        elif command == "WAITJOB" and len(call.request) > 1:
            facts.waits.append(call)
        elif command == "ENQUEUE" and call.request[1:2] and call.request[1].upper() == "QUEUE":
            continue
        elif command in OF_JOBS:
            _note_report(facts, call)
        elif command in _OF_QUEUES and len(call.request) > 1:
            _of_queue(facts, call)
    return facts


def _add(facts: Facts, call: Call) -> None:
    add = Add(
        call=call, queue=call.request[1], body=call.request[2], options=_options(call.request[4:])
    )
    if call.is_ok:
        add.id = call.reply
        facts.job(add.id).adds.append(add)
    elif call.error is None:
        add.is_unknown = True
    elif call.error.startswith("DUPLICATE "):
        add.named = call.error.split(" ")[1]
        facts.job(add.named)
    else:
        add.is_unknown = is_doubtful(_bytes(call.error))
    facts.adds.append(add)


def _options(words: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        option = BY_WORD.get(_bytes(word.upper()))
        is_flag = option is not None and not option.usage
        found[word.lower()] = "" if is_flag else next(rest, "")
    return found


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _get(facts: Facts, call: Call) -> None:
    facts.gets.append(call)
    if call.is_ok and call.reply is not None:
        for queue, id, body, *_ in call.reply:
            delivery = Delivery(call=call, queue=queue, id=id, body=body)
            facts.job(id).deliveries.append(delivery)


def ids_of(call: Call) -> list[str]:
    """Return the ids of the jobs that a command names, without tokens."""
    options = _OPTIONS.get(call.command, {})
    jobs = takewhile(lambda word: _bytes(word.upper()) not in options, call.request[1:])
    return [word.partition("@")[0] for word in jobs]


def _note_report(facts: Facts, call: Call) -> None:
    ids = ids_of(call)
    rest = [word.upper() for word in call.request[1 + len(ids) :]]
    delay = 0.0
    if "DELAY" in rest[:1] and len(rest) > 1:
        try:
            delay = float(rest[1])
        except ValueError:
            delay = ENDLESS
    report = JobReport(call=call, delay=delay, is_dead="DEAD" in rest[:1])
    if call.error is None:
        for id in ids:
            if len(id) == _ID_LENGTH:
                facts.job(id).reports.append(report)


def _of_queue(facts: Facts, call: Call) -> None:
    facts.queue_calls.setdefault(call.request[1], []).append(call)
    if call.command == "REDRIVE":
        facts.redriven.update(call.request[1:])


def queues_of(call: Call) -> list[str]:
    """Return the queues of a GETJOB: all words after FROM that are no options."""
    words = list(call.request[1:])
    upper = [word.upper() for word in words]
    if "FROM" not in upper:
        return []
    start = upper.index("FROM") + 1
    found, at = words[start : start + 1], start + 1
    while at < len(words):
        if upper[at] in ("TIMEOUT", "COUNT"):
            at += 2
        elif upper[at] in ("NOHANG", "WITHCOUNTERS", "WITHMETA", "TIED", "HELD"):
            at += 1
        else:
            found.append(words[at])
            at += 1
    return found


def number_of(call: Call, option: str, default: int) -> int:
    """Return the number of an option of GETJOB, or the default."""
    upper = [word.upper() for word in call.request]
    if option in upper[:-1] and call.request[upper.index(option) + 1].isdecimal():
        return int(call.request[upper.index(option) + 1])
    return default
