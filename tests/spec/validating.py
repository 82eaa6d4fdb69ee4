"""Holds runs of the simulator against docs/spec/Job.tla: each event of each job must be a step of
the specification (docs/spec.md, "Runs").

    python -m tests.spec.validating [FROM:TO] [SCENARIO]

The comments above the actions say which events show them. What no event shows is inferred: a state
of the specification is kept for each way in which the events so far can be explained.
"""

import argparse
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import attrs

from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.expand import expand
from disque_trio.sim.scenarios.plan import Plan
from disque_trio.tracing.rows import Row
from tests.arguments import scenario, seeds
from tests.spec.evaluating import Function, Specification, Values
from tests.spec.models import parsed
from tests.spec.parsing import Module, listed_in

SWARM: Final = Path(__file__).parents[2] / "scenarios" / "everything.toml"
INVARIANTS: Final = ("NotLost", "AtMostOnce", "GoneEverywhere")
_ALSO: Final = frozenset(
    [
        "repair", "fail", "requeue", "dequeue", "remind", "move", "dummy", "fastack", "expire",
        "dead", "forget", "outside", "return",
    ]
)  # fmt: skip
_ALIKE: Final = {"result": "setack", "joberror": "jobstate", "postponed": "jobstate"}
"""Messages that are one in the specification."""
_WITH_LIST: Final = ("repljob", "yourjobs", "holders", "ackholders")
_LISTED: Final = frozenset(["REPLJOB", "YOURJOBS", "HOLDERS", "ACKHOLDERS"])
_BY_HOLDERS: Final = frozenset(["QUEUED", "WORKING", "WILLQUEUE", "JOBSTATE"])
"""Messages that show that their sender is a holder."""
_BY_SENDING: Final = ("msgs", "holders")
_BOUNDLESS: Final = 1_000_000
_EVENTS: Final = frozenset(
    ["hold", "drop", "queue", "unqueue", "serve", "give", "acked", "dead", "redrive"]
)
_OF_NODES: Final = frozenset(["crash", "start", "forget"])
_SYNCED_WITHIN: Final = 2_000_000
"""Microseconds."""
_MOST: Final = 64
"""Explanations of one job that are kept."""
_NEVER: Final = -_BOUNDLESS * _BOUNDLESS


@cache
def module() -> Module:
    """The parsed Job.tla."""
    return parsed("Job")


@attrs.frozen
class Table:
    """Which actions the comments of the specification name."""

    rows: Mapping[str, tuple[str, ...]]
    """By kind and cause of an event."""
    halves: Mapping[str, tuple[str, ...]]
    sends: Mapping[str, tuple[str, ...]]
    reads: Mapping[str, tuple[str, ...]]
    after: Mapping[str, tuple[str, ...]]
    must: Mapping[str, tuple[str, ...]]
    """By the name of a message."""


@cache
def table() -> Table:
    """The table of Job.tla."""
    found: dict[str, dict[str, tuple[str, ...]]] = {
        "rows": {},
        "half": {},
        "sends": {},
        "reads": {},
        "after": {},
        "must": {},
    }
    for one in module().definitions.values():
        for word, names in found.items():
            for key in listed_in(one.comment, word):
                names[key] = (*names.get(key, ()), one.name)
    return Table(**{"halves" if word == "half" else word: names for word, names in found.items()})


@cache
def _needs(name: str) -> frozenset[str]:
    """The messages of which the node must have read one in this moment, for the step."""
    return frozenset(cause for cause, names in table().after.items() if name in names)


@attrs.frozen
class Finding:
    """An event that no step of the specification explains, or after which a promise is broken."""

    job: str
    row: Row
    why: str

    def __str__(self) -> str:
        row = self.row
        words = [row.kind, row.cause, row.node, row.peer and f"peer {row.peer}"]
        return f"{self.why}: {row.time / 1e6:.6f} s {' '.join(filter(None, words))} ({self.job})"


@attrs.frozen
class Case:
    """A job with its rows, and those that concern all jobs of a node."""

    job: str
    rows: tuple[Row, ...]
    nodes: frozenset[str]
    later: frozenset[str]
    """Nodes that had not been started when the job was added."""
    need: int
    journal: str
    is_synced: bool = False
    """Whether each record is synced at once, by disks without faults."""
    expires: int = _BOUNDLESS * _BOUNDLESS
    """When its time to live may be over, microseconds."""

    def down_since(self, start: Row) -> int:
        """When the node went down that starts with this row."""
        crashes = [
            row.time
            for row in self.rows
            if row.kind == "crash" and row.node == start.node and row.time <= start.time
        ]
        return crashes[-1] if crashes else start.time


# Cases of a run.


def _jobs_in(row: Row) -> tuple[str, ...]:
    if row.job:
        return (row.job,)
    word = next((each for each in row.detail.split() if each.startswith("jobs=")), "")
    return tuple(word[5:].split(",")) if word else ()


def _option(detail: str, name: str) -> str:
    words = detail.partition("body=")[0].split()
    return next((each[len(name) + 1 :] for each in words if each.startswith(f"{name}=")), "")


def cases(rows: Iterable[Row], config: Mapping[str, str]) -> Iterator[Case]:
    """Each job that was added in the run, with directives that all nodes have."""
    journal = "late" if config.get("appendonly") == "yes" else "none"
    is_synced = config.get("appendfsync") == "always"
    messages = {*table().sends, *table().reads, *table().after}
    found: dict[str, list[Row]] = {}
    common: list[Row] = []
    asked: dict[int, str] = {}
    needs: dict[str, int] = {}
    order: dict[int, int] = {}
    names: dict[str, None] = {}
    for number, row in enumerate(rows):
        order[id(row)] = number
        if row.kind in _OF_NODES:
            common.append(row)
            names[row.node] = None
            is_synced &= row.cause != "empty"
        elif row.kind.startswith("disk."):
            is_synced = False
        elif row.kind in _EVENTS or (row.kind in ("send", "recv") and row.cause in messages):
            for job in _jobs_in(row):
                found.setdefault(job, []).append(row)
        elif row.kind == "add.invoke":
            asked[row.ref] = row.detail
        elif row.kind == "add.ok":
            # Another ADDJOB with its key returns the id, too.
            own = found.get(row.job, [])
            need = _need(asked.get(row.ref, "async"), config, _copies(own))
            needs[row.job] = min(need, needs.get(row.job, need))
    for job, own in found.items():
        if any(row.kind == "hold" and row.cause == "add" for row in own):
            every = sorted([*common, *own], key=lambda row: order[id(row)])
            known = tuple(_of_one_identity(every))
            late = frozenset(names).difference(_there(known))
            yield Case(
                job,
                known,
                frozenset(names),
                late,
                needs.get(job, 0),
                journal,
                is_synced=is_synced,
                expires=_expiry(own),
            )


def _copies(rows: Iterable[Row]) -> int:
    """How many copies its node wanted of the job."""
    adds = [row for row in rows if row.kind == "hold" and row.cause == "add"]
    return int(_option(adds[0].detail, "replicate") or 1) if adds else 1


def _expiry(rows: Iterable[Row]) -> int:
    """When the job may have expired by the clock of a node, microseconds."""
    first = next(row for row in rows if row.kind == "hold" and row.cause == "add")
    left = first.detail.rpartition(" left=")[2].partition(" ")[0]
    return first.time + int(left) * 900


def _of_one_identity(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows up to the first in which a node gets another id: rows have only its name."""
    began = False
    for row in rows:
        began = began or row.kind == "hold"
        if began and (row.kind, row.cause) == ("start", "fresh"):
            return
        yield row


def _there(rows: Iterable[Row]) -> Iterator[str]:
    """The nodes that have been started when the job is added."""
    for row in rows:
        if row.kind == "hold":
            return
        if row.kind == "start":
            yield row.node


def _need(options: str, config: Mapping[str, str], wanted: int) -> int:
    """How many copies must be confirmed before ADDJOB may return, as far as its words say. One
    without REPLICATE wants `default-replicate`, or fewer if the cluster has fewer nodes."""
    if "async" in options.partition("body=")[0].split():
        return 0
    sync, replicate = _option(options, "sync"), _option(options, "replicate")
    copies = int(replicate or min(wanted, int(config.get("default-replicate", "3"))))
    default = int(config.get("default-sync", "0"))
    if sync == "AUTO":
        return min(default or copies // 2 + 1, copies)
    return min(int(sync or default) or copies, copies)


# One job.


@attrs.define
class _Player:
    case: Case
    specification: Specification
    states: list[Values]
    read: dict[str, list[Row]] = attrs.Factory(dict)
    """By node: messages that it has read in the batch of this moment."""
    to_send: dict[str, deque[Row]] = attrs.Factory(dict)
    """By node: messages that it sends, which may wait for the disk."""
    did: dict[str, str] = attrs.Factory(dict)
    """By node: the kind of its latest event of this moment."""
    begun: dict[str, tuple[str, ...]] = attrs.Factory(dict)
    """By node: the actions of which it has shown the first part."""
    had: dict[str, list[tuple[int, frozenset[str]]]] = attrs.Factory(dict)
    """By node: what its journal may have been told of the record, and when."""
    lists: dict[str, dict[frozenset[str], None]] = attrs.Factory(dict)
    """By node: the lists of holders that its journal may have been told."""
    equals: int = 0
    """How many GOTACKs were sent to a node that knows as many holders, and other ones."""

    def play(self) -> Finding | None:
        for row in self.case.rows:
            if row.kind == "send":
                self.to_send.setdefault(row.node, deque()).append(row)
        for number, row in enumerate(self.case.rows):
            why = self.end_batches(row) or self.step(number, row)
            if why:
                return Finding(self.case.job, row, why)
            self.send_ahead(row)
            self.note_for_journal(row)
            for invariant in INVARIANTS:
                if not any(self.specification.value(invariant, each) for each in self.states):
                    return Finding(self.case.job, row, f"{invariant} is broken")
        last = self.case.rows[-1]
        why = self.end_batches(attrs.evolve(last, time=last.time + 1))
        return Finding(self.case.job, last, why) if why else None

    def step(self, number: int, row: Row) -> str:
        """Why no step explains the row; empty if one does."""
        if row.kind in ("send", "recv"):
            return self.receive(row) if row.kind == "recv" else self.send(row)
        if row.kind == "crash":
            self.read.pop(row.node, None)
            self.begun.pop(row.node, None)
            self.did.pop(row.node, None)
            return self.move("Crash", [(row.node,)])
        if row.kind == "start":
            return self.start(number, row)
        if row.kind == "forget":
            return self.move("Forget", [(row.node, row.peer)])
        return self.event(row)

    def event(self, row: Row) -> str:
        key = f"{row.kind} {row.cause}"
        if row.node in self.read:
            self.did[row.node] = row.kind
        if key in ("hold loaded", "acked loaded"):
            return ""
        whole = key not in table().halves
        names = (table().rows if whole else table().halves).get(key)
        if names is None:
            return "the specification has no such event"
        begun = self.begun.pop(row.node, names)
        names = tuple([name for name in names if name in begun])
        if not names:
            return "an event before it is only the first part of another step"
        if not whole:
            self.begun[row.node] = names
            return ""
        read = {each.cause for each in self.read.get(row.node, ())}
        names = tuple([name for name in names if not _needs(name) or _needs(name) & read])
        if not names:
            return "its node has not read the message that it follows from"
        self.keep(self.explained(row, names))
        self.note_lists(row.node)
        self.catch_up(row.node)
        return "" if self.states else "this is no step of the specification"

    def explained(self, row: Row, names: Iterable[str]) -> Iterator[Values]:
        """The states after an event. An ADDJOB may have returned first, unseen."""
        peers = [row.peer] if row.peer else sorted(self.case.nodes)
        read = [each for each in self.read.get(row.node, ()) if each.cause in _WITH_LIST]
        for state in self.states:
            befores = [state, *self.specification.steps("Begin", state, row.node)]
            for name in names:
                for arguments in self.arguments(name, row.node, peers):
                    for before in befores:
                        yield from self.after_reading(name, before, read, arguments)

    def arguments(self, name: str, node: str, peers: Iterable[str]) -> Iterable[tuple[object, ...]]:
        params = self.specification.module.definitions[name].params
        return [(node,)] if len(params) == 1 else [(node, peer) for peer in peers]

    def keep(self, states: Iterable[Values]) -> None:
        kept: dict[tuple[object, ...], Values] = {}
        for each in states:
            kept.setdefault(tuple(each.values()), each)
            if len(kept) == _MOST:
                break
        self.states = list(kept.values())

    def move(self, name: str, arguments: Iterable[tuple[object, ...]]) -> str:
        """A row that concerns all jobs of the node: where it changes nothing, nothing happens."""
        after = [
            next(iter(self.specification.steps(name, state, *each)), state)
            for state in self.states
            for each in arguments
        ]
        self.keep(after)
        return ""

    def start(self, number: int, row: Row) -> str:
        """With what the journal had: a record, if one is loaded before the node is down again."""
        node = row.node
        record = self.loaded(number, node)
        ups = [state for state in self.states if node in state["down"]]
        if not ups:
            return "" if not record else "it is loaded by a node that was not down"
        word = record or "absent"
        self.keep(
            after
            for state in ups
            if word in self.journaled(row)
            for known in dict.fromkeys([state["holders"][node], *self.lists.get(node, ())])
            for after in self.specification.steps("Start", state, node, word, known)
        )
        return "" if self.states else "its journal cannot have had that"

    def loaded(self, number: int, node: str) -> str:
        """The state of the record that the node loads after this row; empty if it loads none."""
        rows = [row for row in self.case.rows[number + 1 :] if row.node == node]
        own = [row for row in rows if row.job or row.kind in ("crash", "start")][:2]
        if not own or (own[0].kind, own[0].cause) != ("hold", "loaded"):
            return ""
        if not own[0].queue:
            return "dummy"
        states = [row.kind for row in own[1:] if row.cause == "loaded"]
        return states[0] if states and states[0] in ("acked", "dead") else "active"

    def note_for_journal(self, row: Row) -> None:
        if row.kind in _EVENTS or row.kind == "recv":
            words = frozenset(
                self.specification.value("OnDisk", each, row.node)
                for state in self.states
                for each in [state, *self.specification.steps("Begin", state, row.node)]
            )
            self.had.setdefault(row.node, []).append((row.time, words))
            self.note_lists(row.node)

    def note_lists(self, node: str) -> None:
        lists = self.lists.setdefault(node, {})
        lists.update(dict.fromkeys(state["holders"][node] for state in self.states))

    def journaled(self, row: Row) -> frozenset[str]:
        """What the journal may have of the record: one of its states, or one of the latest."""
        had = [(_NEVER, frozenset(["absent"])), *self.had.get(row.node, ())]
        if self.case.is_synced:
            at = self.case.down_since(row) - _SYNCED_WITHIN
            old = [words for time, words in had if time <= at]
            had = [(_NEVER, old[-1]), *[each for each in had if each[0] > at]]
        found = frozenset(word for _, words in had for word in words)
        # If memory is short, a node does not keep the record of an acknowledged job.
        may_be_left_out = row.time >= self.case.expires or found & {"acked", "dummy"}
        return found | {"absent"} if may_be_left_out else found

    # Messages.

    def receive(self, row: Row) -> str:
        sent = self.message(attrs.evolve(row, node=row.peer, peer=row.node))
        self.keep(state for state in self.states if sent.found_in(state))
        if not self.states:
            return "it reads a message that the specification does not send"
        self.read.setdefault(row.node, []).append(row)
        self.catch_up(row.node)
        return ""

    def catch_up(self, node: str, *, is_over: bool = False) -> None:
        """What it has read takes effect as soon as the record can have it. The rows of a batch have
        all of its messages first, and then what came of them: so a tombstone may be later than a
        copy that is taken in."""
        for row in self.read.get(node, ()):
            for name in table().reads.get(row.cause, ()):
                if is_over or name != "Bury":
                    self.states = [self.absorbed(name, state, row) for state in self.states]

    def end_batches(self, row: Row) -> str:
        """Why something is missing of what follows from the messages of earlier moments."""
        for node in [node for node, read in self.read.items() if read[0].time < row.time]:
            self.catch_up(node, is_over=True)
            read = self.read.pop(node)
            if self.did.pop(node, "") not in ("queue", "hold"):
                for each in read:
                    if missing := self.neglected(each):
                        return missing
        return ""

    def neglected(self, row: Row) -> str:
        """A step that a node takes as soon as it has read the message, and has not taken."""
        names = table().must
        for name in (*names.get(row.cause, ()), *names.get(f"{row.cause} {row.detail}", ())):
            params = self.specification.module.definitions[name].params
            arguments = (row.node, row.peer)[: len(params)]
            if all(any(self.specification.steps(name, each, *arguments)) for each in self.states):
                return f"{row.node} has read {row.cause} of {row.peer}, without the step {name}"
        return ""

    def send_ahead(self, row: Row) -> None:
        """A message may leave long after the step that sends it, once the journal is synced."""
        queue = self.to_send.get(row.node, deque())
        while queue and (queue[0].time < row.time or queue[0] is row):
            queue.popleft()
        within = 0 if self.case.journal == "none" else _SYNCED_WITHIN
        for each in queue:
            if each.time > row.time + within:
                break
            message = self.message(each)
            self.keep(
                [after for state in self.states for after in self.ahead(state, each, message)]
            )

    def ahead(self, state: Values, row: Row, message: "_Message") -> list[Values]:
        """The state once the message is on its way. If its list has new holders, they may be chosen
        now, or later."""
        if message.found_in(state):
            return [state]
        for after in self.sent([state], row, message):
            if all(after[name] == state[name] for name in state if name not in _BY_SENDING):
                is_same = after["holders"] == state["holders"]
                return [after] if is_same else [state, after]
        return [state]

    def absorbed(self, name: str, state: Values, row: Row) -> Values:
        """The state in which the node knows most of what the message says."""
        after = self.after_reading(name, state, [row], (row.node, row.peer))
        return max(after, key=lambda each: len(each["holders"][row.node]), default=state)

    def after_reading(
        self, name: str, state: Values, read: Iterable[Row], arguments: tuple[object, ...]
    ) -> list[Values]:
        """The states after a step for which a node has read just these of the messages."""
        node = arguments[0]
        telling = _LISTED | _BY_HOLDERS if name == "Learn" else _LISTED
        sent = [self.message(attrs.evolve(row, node=row.peer, peer=row.node)) for row in read]
        unread = frozenset(
            each
            for each in state["msgs"]
            if each["to"] == node
            and each["type"] in telling
            and not any(message.is_said_by(each, state) for message in sent)
        )
        if not unread:
            return list(self.specification.steps(name, state, *arguments))
        narrowed = {**state, "msgs": state["msgs"] - unread}
        after = self.specification.steps(name, narrowed, *arguments)
        return [{**each, "msgs": each["msgs"] | unread} for each in after]

    def send(self, row: Row) -> str:
        if row.node in self.read:
            self.catch_up(row.node, is_over=True)
        message = self.message(row)
        found = [state for state in self.states if message.found_in(state)]
        unsent = [state for state in self.states if not message.found_in(state)]
        found += self.sent(unsent, row, message)
        if not found:
            # An ADDJOB may have returned first, unseen.
            begun = [
                after
                for state in unsent
                for after in self.specification.steps("Begin", state, row.node)
            ]
            found = self.sent(begun, row, message)
        if not found and row.cause == "gotack":
            found = [after for state in unsent for after in self.by_number(state, row, message)]
            self.equals += bool(found)
        self.keep(found)
        return "" if self.states else "the specification does not send that"

    def by_number(self, state: Values, row: Row, message: "_Message") -> list[Values]:
        """The states after a GOTACK to a node that knows as many holders, and other ones: nodes of
        earlier versions compare numbers, the specification lists."""
        asked = _sent(state["msgs"]).get(("SETACK", row.peer, row.node), [])
        mine = state["holders"][row.node]
        equal = frozenset(each.having(("list",), lambda _: mine) for each in asked
                          if len(each["list"]) == len(mine))  # fmt: skip
        after = self.sent([{**state, "msgs": state["msgs"] | equal}], row, message)
        return [{**each, "msgs": each["msgs"] - equal} for each in after]

    def sent(self, states: Iterable[Values], row: Row, message: "_Message") -> list[Values]:
        found = []
        for state in states:
            for name in table().sends.get(row.cause, ()):
                for arguments in self.sendings(name, row, message):
                    after = self.specification.steps(name, state, *arguments)
                    found += [each for each in after if message.found_in(each)]
        return found

    def sendings(self, name: str, row: Row, message: "_Message") -> Iterable[tuple[object, ...]]:
        params = self.specification.module.definitions[name].params
        if params == ("n",):
            return [(row.node,)]
        if params == ("n", "S"):
            return [(row.node, message.holders)]
        if params == ("n", "m"):
            return [(row.node, row.peer)]
        return [(row.node, row.peer, kind) for kind in message.kinds]

    def message(self, row: Row) -> "_Message":
        """What the row of its sender says of a message."""
        holders = frozenset[str]()
        count = 0
        if row.cause in _WITH_LIST:
            holders = frozenset(self.holders_in(row))
            count = len(holders)
        elif _types(row) == ("SETACK",):
            count = int(_option(row.detail, "holders") or 0)
        return _Message(_types(row), row.node, row.peer, holders, count)

    def holders_in(self, row: Row) -> tuple[str, ...]:
        lists = _option(row.detail, "holders").split(";")
        at = _jobs_in(row).index(self.case.job) if len(lists) > 1 else 0
        return tuple(filter(None, lists[at].split(",")))


@attrs.frozen
class _Message:
    """A message, as its row says. SETACK has the number of the holders that its node knows."""

    kinds: tuple[str, ...]
    sender: str
    receiver: str
    holders: frozenset[str]
    count: int

    def found_in(self, state: Values) -> bool:
        """Was it sent?"""
        return any(self.is_said_by(each, state) for each in self._alike(state))

    def is_said_by(self, each: Function, state: Values) -> bool:
        """Is it this one? The code takes nodes that are forgotten off its lists."""
        if (each["from"], each["to"]) != (self.sender, self.receiver):
            return False
        if each["type"] not in self.kinds:
            return False
        gone = state["gone"][self.sender]
        if self.holders:
            return bool(each["list"] - gone == self.holders - gone)
        if not self.count:
            return True
        return len(each["list"] - gone) <= self.count <= len(each["list"])

    def _alike(self, state: Values) -> Iterable[Function]:
        sent = _sent(state["msgs"])
        for kind in self.kinds:
            yield from sent.get((kind, self.sender, self.receiver), ())


@lru_cache(maxsize=4096)
def _sent(messages: frozenset[Function]) -> Mapping[tuple[str, str, str], list[Function]]:
    found: dict[tuple[str, str, str], list[Function]] = {}
    for each in messages:
        found.setdefault((each["type"], each["from"], each["to"]), []).append(each)
    return found


def _types(row: Row) -> tuple[str, ...]:
    """The type of the message in the specification."""
    if row.cause == "gotack":
        return ("GOTACK",) if row.detail == "known" else ("UNKNOWN",)
    return (_ALIKE.get(row.cause, row.cause).upper(),)


def check(case: Case) -> Finding | None:
    """Play the rows of one job. Returns the first that is no step of the specification."""
    return player(case).play()


def player(case: Case) -> _Player:
    """Who plays the rows of one job."""
    first = next(row for row in case.rows if row.kind == "hold" and row.cause == "add")
    constants = {
        "Node": case.nodes,
        "Retry": _option(first.detail, "retry") != "0",
        "Keyed": bool(_option(first.detail, "key")),
        "Need": case.need,
        "Journal": case.journal,
        "MaxServed": _BOUNDLESS,
        "MaxCrashes": _BOUNDLESS,
        "MaxCopies": _BOUNDLESS,
        "Also": _ALSO,
    }
    specification = Specification(module(), constants)
    # Nobody asks a node that is not there yet. If it comes, it may still get a copy.
    gone = Function(dict.fromkeys(case.nodes, case.later))
    beginnings = [{**each, "gone": gone} for each in specification.beginnings()]
    return _Player(case, specification, beginnings)


@attrs.define
class Result:
    """What was checked of a run."""

    jobs: int = 0
    rows: int = 0
    findings: list[Finding] = attrs.Factory(list)
    equals: int = 0
    """GOTACKs to nodes that know as many holders, and other ones: of earlier versions."""


def validate(plan: Plan) -> Result:
    """Play a plan, and hold each of its jobs against the specification."""
    rows: list[Row] = []
    simulate(plan, rows.append)
    result = Result()
    for case in cases(rows, dict(plan.config)):
        result.jobs += 1
        result.rows += len(case.rows)
        plays = player(case)
        found = plays.play()
        result.equals += plays.equals
        if found is not None:
            result.findings.append(found)
    return result


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Play seeds, and print what is no step of the specification."""
    parser = argparse.ArgumentParser(prog="python -m tests.spec.validating", description=__doc__)
    parser.add_argument("seeds", nargs="?", type=seeds, default="0:5", help="FROM:TO (0:5)")
    parser.add_argument("scenario", nargs="?", type=scenario, default=SWARM, help="a file")
    options = parser.parse_args(arguments)
    jobs = rows = wrong = 0
    for seed in options.seeds:
        result = validate(expand(options.scenario, seed))
        jobs, rows, wrong = jobs + result.jobs, rows + result.rows, wrong + len(result.findings)
        _say(
            f"seed {seed}: {result.jobs} jobs, {result.rows} rows, {len(result.findings)} findings"
            + (f", {result.equals} GOTACKs by number alone" if result.equals else "")
        )
        for finding in result.findings[:5]:
            _say(f"  {finding}")
    _say(f"{jobs} jobs, {rows} rows: {wrong} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
