"""Holds runs of the simulator against docs/spec/Key.tla (docs/spec.md, "Runs").

    python -m tests.spec.validating_keys [FROM:TO]

Key.tla has one ADDJOB for the key at each node, and one node that knows the job. So a case is a key
for which no node has two ADDJOBs, and whose jobs have one replica, in a run without faults.

Of the nodes that the specification numbers by the creation stamp of their ADDJOB, those without one
come last.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final
from zlib import crc32

import attrs

from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.scenarios.fault_kinds import ROWS
from disque_trio.sim.scenarios.plan import Add, Consumer, Latency, LinkPlan, Plan
from disque_trio.statemachine.key_facts import HELD, KEPT, MOVED, PENDING
from disque_trio.tracing.rows import Row
from tests.arguments import seeds
from tests.spec.evaluating import Specification, Values
from tests.spec.models import parsed
from tests.spec.parsing import Module

_FAULTS: Final = frozenset(ROWS) - {"start"}
SECOND: Final = 1_000_000
_ADDED: Final = ("add.ok", "add.refused")
_OF_JOBS: Final = ("hold", "acked", "drop")


@cache
def module() -> Module:
    """The parsed Key.tla."""
    return parsed("Key")


@attrs.frozen
class Case:
    """A key, and what the nodes did about it."""

    key: str
    """As rows of jobs have it."""
    rows: tuple[Row, ...]
    numbers: Mapping[str, int]
    """Of each node."""
    jobs: Mapping[str, str]
    """The node of the ADDJOB, by job."""
    keep: int
    """For how long the job keeps the key after its end, milliseconds."""


@attrs.frozen
class Finding:
    """A row that no step of the specification explains."""

    key: str
    row: Row
    why: str


def _word(row: Row, name: str) -> str:
    words = row.detail.partition(" body=")[0].split() + row.detail.partition(" body=")[2].split()
    return next((each[len(name) + 1 :] for each in words if each.startswith(f"{name}=")), "")


@attrs.define
class _Keys:
    """Which key a row is about."""

    asked: dict[int, str] = attrs.Factory(dict)
    """By the number of an ADDJOB."""
    claimed: dict[tuple[str, str], str] = attrs.Factory(dict)
    """By the node that asks, and its number of the question."""
    held: dict[str, str] = attrs.Factory(dict)
    """By job."""

    def of(self, row: Row) -> str:
        """The key as rows of jobs have it; empty for rows that are about none."""
        number = _word(row, "number").partition("/")[0]
        asker = row.peer if (row.kind == "send") == (row.cause == "keyanswer") else row.node
        if row.kind == "add.invoke":
            self.asked[row.ref] = _word(row, "unique")
        elif row.kind in _ADDED:
            return self.asked.get(row.ref, "")
        elif row.cause == "keyclaim" and row.job:
            self.claimed[asker, number] = str(crc32(_word(row, "key").encode()))
            return self.claimed[asker, number]
        elif row.cause == "keyanswer":
            return self.claimed.get((asker, number), "")
        elif row.kind in _OF_JOBS:
            self.held.setdefault(row.job, _word(row, "key"))
            return self.held[row.job]
        return ""


def cases(rows: Iterable[Row]) -> Iterator[Case]:
    """Each key of the run that the specification describes."""
    found: dict[str, list[Row]] = {}
    nodes: dict[str, None] = {}
    keys = _Keys()
    for row in rows:
        if row.kind in _FAULTS:
            return
        if row.kind == "start":
            nodes[row.node] = None
        if key := keys.of(row):
            found.setdefault(key, []).append(row)
    for key, own in found.items():
        case = _case(key, own, list(nodes))
        if case is not None:
            yield case


def _case(key: str, rows: list[Row], nodes: list[str]) -> Case | None:
    claims: dict[str, Row] = {}
    for row in rows:
        is_claim = (row.kind, row.cause) == ("send", "keyclaim")
        if is_claim or (row.kind, row.cause) == ("hold", "add"):
            claims.setdefault(row.job, row)
        elif row.kind == "hold" or f":{MOVED}" in _word(row, "facts"):
            return None
    by_age = sorted(claims.values(), key=lambda row: row.wall)
    ordered = [row.node for row in by_age]
    has_follower = any(_word(row, "follows") for row in rows)
    is_once = len({*ordered}) == len(ordered) == len({row.wall for row in by_age})
    if has_follower or not is_once:
        return None
    ordered += [node for node in nodes if node not in ordered]
    numbers = {node: number for number, node in enumerate(ordered, 1)}
    homes = {job: row.node for job, row in claims.items()}
    keeps = [int(_word(row, "keep") or 0) for row in rows if row.kind == "hold"]
    return Case(key, tuple(rows), numbers, homes, max(keeps, default=0))


@attrs.define
class _Player:
    case: Case
    specification: Specification
    states: list[Values]
    rounds: dict[tuple[int, int, str], int] = attrs.Factory(dict)
    """The round of the specification, by asking and asked node and the round of the row."""
    kept_until: dict[int, int] = attrs.Factory(dict)
    """By node, milliseconds of its clock: the specification has no time."""

    def play(self) -> Finding | None:
        for row in self.case.rows:
            why = self.step(row)
            if not why and not all(self.specification.value("OneHolder", s) for s in self.states):
                why = "OneHolder is broken"
            if why:
                return Finding(self.case.key, row, why)
        return None

    def step(self, row: Row) -> str:
        """Why no step explains the row; empty if one does."""
        number = self.case.numbers[row.node]
        if row.cause == "keyclaim":
            return self.ask(row, number) if row.kind == "send" else ""
        if row.cause == "keyanswer":
            answer = self.answer if row.kind == "send" else self.count
            return answer(row, number, self.case.numbers[row.peer])
        if row.kind == "hold":
            self.begin(number)
            return self.take([("Pass", number)], "it is added before all nodes have said yes")
        if row.kind in _ADDED:
            return self.end_add(row, number)
        if self.case.jobs.get(row.job) == row.node and self.states[0]["st"][number] == "live":
            self.kept_until[number] = row.mono + self.case.keep
            return self.take([("End", number)], "a job ends that is not there")
        return ""

    def take(self, steps: Iterable[tuple[object, ...]], why: str) -> str:
        self.states = [
            after
            for state in self.states
            for name, *arguments in steps
            for after in self.specification.steps(str(name), state, *arguments)
        ]
        return "" if self.states else why

    def begin(self, number: int) -> None:
        if self.states[0]["st"][number] == "none":
            self.take([("Claim", number)], "")

    def ask(self, row: Row, number: int) -> str:
        self.begin(number)
        peer = self.case.numbers[row.peer]
        label = _word(row, "number").partition("/")[2]
        is_new = all((one, each) != (number, label) for one, _, each in self.rounds)
        if is_new and any(one == number for one, _, _ in self.rounds):
            others = [each for each in self.case.numbers.values() if each != number]
            steps = [("MakeWay", number, peer), *[("Confirm", number, each) for each in others]]
            if why := self.take(steps, "it asks again without a reason"):
                return why
        # A repeated question has the number of the latest one, whomever that asked.
        self.rounds.setdefault((number, peer, label), self.states[0]["round"][number][peer])
        return ""

    def said(self, row: Row, asker: int, asked: int) -> Values | None:
        """The answer in the specification."""
        facts = [each.rpartition(":")[2] for each in _word(row, "facts").split(",")]
        taken = str(HELD) in facts or str(KEPT) in facts
        word = "taken" if taken else "pending" if str(PENDING) in facts else "free"
        spec_round = self.rounds.get((asker, asked, _word(row, "number").partition("/")[2]))
        if spec_round is None:
            return None
        answer: Values = self.specification.value(
            "Answer", self.states[0], asked, asker, spec_round, word
        )
        return answer

    def answer(self, row: Row, number: int, peer: int) -> str:
        answer = self.said(row, peer, number)
        if answer is None:
            return "it answers what was not asked"
        found = []
        for state in self.unseen(row, number):
            if answer in state["msgs"] and not self.yields(state, number, peer):
                found.append(state)
            for name in ("Reply", "MakeWay"):
                after = self.specification.steps(name, state, number, peer)
                found += [each for each in after if answer in each["msgs"]]
        unique: list[Values] = []
        for each in found:
            if each not in unique:
                unique.append(each)
        self.states = unique
        return "" if found else f"it says {answer['word']}"

    def unseen(self, row: Row, number: int) -> Iterator[Values]:
        """The states, and those in which the key is not kept any more, or the ADDJOB is refused,
        which its client learns later."""
        for state in self.states:
            yield state
            if row.mono >= self.kept_until.get(number, 0):
                yield from self.specification.steps("Release", state, number)
            for each in self.case.numbers.values():
                if each != number:
                    yield from self.specification.steps("Refuse", state, number, each)

    def yields(self, state: Values, number: int, peer: int) -> bool:
        return bool(self.specification.value("IsNewAndEarlier", state, number, peer))

    def count(self, row: Row, number: int, peer: int) -> str:
        answer = self.said(row, number, peer)
        if answer is None or not all(answer in state["msgs"] for state in self.states):
            return "it reads an answer that nobody gave"
        if answer["word"] == "free":
            self.states = [
                next(iter(self.specification.steps("Count", state, number, peer)), state)
                for state in self.states
                if answer in state["msgs"]
            ]
        return ""

    def end_add(self, row: Row, number: int) -> str:
        is_refused = row.kind == "add.refused" and row.cause == "DUPLICATE"
        is_other = row.kind == "add.ok" and self.case.jobs.get(row.job) != row.node
        if not is_refused and not is_other:
            return ""
        holders = [each for each in self.case.numbers.values() if each != number]
        if is_other:
            holders = [self.case.numbers[self.case.jobs[row.job]]]
        refused = [state for state in self.states if state["st"][number] == "refused"]
        steps = [("Refuse", number, each) for each in holders]
        why = self.take(steps, "it had no reason to refuse")
        self.states += refused
        return "" if self.states else why


def check(case: Case) -> Finding | None:
    """Play the rows about one key."""
    constants = {"Node": frozenset(case.numbers.values()), "Keep": case.keep > 0}
    specification = Specification(module(), constants)
    return _Player(case, specification, list(specification.beginnings())).play()


def rivals(seed: int) -> Plan:
    """Four nodes want each key within 50 ms, over links that take up to 60 ms. Every second key is
    kept, and one node wants it again later."""
    nodes = range(1, 5)
    adds = [
        Add(
            at=key * SECOND + (node * (key + seed + 2) * 7 + key) % 50 * 1000,
            node=node,
            producer=f"p{node}",
            queue="q",
            body=f"b{key}-{node}",
            replicate=1,
            retry_s=30,
            ttl_s=3600,
            unique=f"k{key}",
            keep_s=2 if key % 2 else None,
            timeout_ms=5000,
        )
        for key in range(8)
        for node in nodes
    ]
    late = [add.node == 1 + add.at // SECOND % 4 for add in adds]
    adds = [
        attrs.evolve(add, at=add.at + SECOND // 2 * is_late)
        for add, is_late in zip(adds, late, strict=True)
    ]
    workers = [
        Consumer(name=f"c{node}", node=node, queues=("q",), work=(5_000, 60_000)) for node in nodes
    ]
    return Plan(
        scenario="rivals",
        seed=seed,
        nodes=4,
        adds=tuple(sorted(adds, key=lambda add: add.at)),
        consumers=tuple(workers),
        link=LinkPlan(latency=Latency(fast=(2_000, 60_000))),
        chaos=12 * SECOND,
        config=(("cluster-node-timeout", "2000"),),
        codec_every=1,
    )


def validate(plan: Plan) -> tuple[int, list[Finding]]:
    """Play a plan. Returns how many keys were checked, and what was found."""
    rows: list[Row] = []
    simulate(plan, rows.append)
    checked = [check(case) for case in cases(rows)]
    return len(checked), [each for each in checked if each is not None]


def main(arguments: list[str]) -> int:
    """Play seeds of the plan, and print what is no step of the specification."""
    parser = argparse.ArgumentParser(prog="python -m tests.spec.validating_keys")
    parser.add_argument("seeds", nargs="?", type=seeds, default="0:5", help="FROM:TO (0:5)")
    keys = wrong = 0
    for seed in parser.parse_args(arguments).seeds:
        checked, findings = validate(rivals(seed))
        keys, wrong = keys + checked, wrong + len(findings)
        for each in findings[:5]:
            sys.stdout.write(f"seed {seed}: {each.why}: {each.row}\n")
    sys.stdout.write(f"{keys} keys: {wrong} findings\n")
    return 1 if wrong or not keys else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
