"""Nodes with drawn capabilities: what needs one goes only where it is, or is refused at once."""

import random

import pytest

from disque_trio.statemachine.base import (
    BURIES,
    CAPABILITIES,
    EXTENDS,
    NULL_ARRAY,
    Failure,
    JobId,
    Status,
)
from tests.statemachine.mixing import Mixed, drawn, id_of

NAMES = ("n1", "n2", "n3", "n4")
NEEDS: dict[tuple[str | int, ...], int] = {
    (): 0,
    ("DELAY", 1): 0,
    ("RETRY", 0): 0,
    ("PRIORITY", 5): EXTENDS,
    ("BACKOFF", 1): EXTENDS,
    ("BACKOFF", 1, "MAXBACKOFF", 9): EXTENDS,
    ("LIMIT", 3): EXTENDS | BURIES,
    ("UNIQUE", "key"): EXTENDS,
    ("UNIQUE", "key", "KEEP", 5, "IFEXISTS", "again"): EXTENDS,
    ("SYNC", 1): 0,
    ("SYNC", 1, "PRIORITY", 5): EXTENDS,
    ("ASYNC",): 0,
    ("MAXLEN", 900): 0,
}
"""What the other holders of a job must announce, by its options."""
AT_ONCE = 250
"""Milliseconds: a few messages. Nobody waits for a node that cannot."""


def add(rig: Mixed, name: str, options: tuple[str | int, ...], number: int) -> JobId | None:
    """An ADDJOB, which is answered as the capabilities of the others say."""
    words = [f"key{number}" if word == "key" else word for word in options]
    replicas = 1 if "RETRY" in options else 3
    if "RETRY" not in options:
        words += ["RETRY", 2]
    asked = ("ADDJOB", "q", "body", 0, "REPLICATE", replicas, *words)
    reply = rig.ask(name, *asked, within=AT_ONCE)
    copies = 1 if "SYNC" in options else replicas
    is_possible = rig.able(name, NEEDS[options]) >= copies - 1
    if "UNIQUE" in options:
        is_possible &= not rig.is_mute(name)
    assert isinstance(reply, Status) is is_possible, (options, rig.announced, reply)
    if not is_possible:
        assert isinstance(reply, Failure)
        assert reply.text.startswith(b"NOREPL")
        return None
    return id_of(reply)


def take(rig: Mixed, name: str) -> list[JobId]:
    """What a worker gets that polls."""
    reply = rig.ask(name, "GETJOB", "NOHANG", "COUNT", 10, "FROM", "q")
    rows = [] if reply is NULL_ARRAY or not isinstance(reply, list) else reply
    return [row[1] for row in rows if isinstance(row, list) and isinstance(row[1], bytes)]


def give_back(rig: Mixed, name: str, rng: random.Random, job: JobId) -> None:
    """What every version knows at any node, and what only this one knows."""
    ways: list[tuple[str | int, ...]] = [("NACK",), ("ENQUEUE",)]
    if rig.announced[name] == CAPABILITIES:
        ways += [("NACK", "DELAY", 1), ("RELEASE",), ("RELEASE", "DELAY", 1)]
        ways += [("NACK", "DEAD", "broken"), ("NACK", "ERROR", "why")]
    first, *rest = rng.choice(ways)
    rig.ask(name, first, job, *rest)


def drain(rig: Mixed, delivered: dict[JobId, int], wanted: set[JobId]) -> None:
    """All nodes are of this version now: every job comes, at whatever node."""
    for name in NAMES:
        rig.live_anew(name, CAPABILITIES)
    for _ in range(60):
        for name in NAMES:
            rig.ask(name, "REDRIVE", "q")
            for job in take(rig, name):
                delivered[job] = delivered.get(job, 0) + 1
                rig.ask(name, "ACKJOB", job)
        if wanted <= delivered.keys():
            return
        rig.run(1000)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(12))
def test_what_a_node_cannot_read_it_does_not_get_and_nothing_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    rig = Mixed(*NAMES, seed=seed)
    accepted: dict[JobId, bool] = {}
    delivered: dict[JobId, int] = {}
    for number in range(120):
        if number % 15 == 0:
            rig.live_anew(rng.choice(NAMES[1:]), drawn(rng))
        full = [name for name in NAMES if rig.announced[name] == CAPABILITIES]
        options = rng.choice(list(NEEDS))
        job = add(rig, rng.choice(full), options, number)
        if job is not None:
            accepted[job] = "RETRY" in options
        if rng.random() < 0.5:
            name = rng.choice(NAMES)
            for job in take(rig, name):
                delivered[job] = delivered.get(job, 0) + 1
                if rng.random() < 0.4 and not accepted.get(job, True):
                    give_back(rig, name, rng, job)
                else:
                    rig.ask(name, "ACKJOB", job)
        rig.run(rng.randrange(400))

    drain(rig, delivered, set(accepted))

    assert rig.told == []
    assert set(accepted) <= delivered.keys()
    assert all(delivered[job] == 1 for job, is_once in accepted.items() if is_once)


@pytest.mark.slow
@pytest.mark.parametrize("command", [("SHOW", "KEY", "q", "k"), ("CANCEL", "KEY", "q", "k")])
def test_questions_about_keys_are_answered_at_once(command: tuple[str, ...]) -> None:
    for seed in range(20):
        rig = Mixed(*NAMES)
        rig.live_anew("n2", drawn(random.Random(seed)))

        reply = rig.ask("n1", *command, within=AT_ONCE)

        assert isinstance(reply, Failure) is rig.is_mute("n1")


def test_a_holder_of_an_earlier_version_by_now_is_not_told_of_new_holders() -> None:
    rig = Mixed(*NAMES)
    rig.ask("n1", "CONFIG", "SET", "replica-repair-after", 1)
    options = ("REPLICATE", 3, "RETRY", 600, "PRIORITY", 5)
    job = id_of(rig.ask("n1", "ADDJOB", "q", "body", 0, *options))
    rig.run(1000)
    lost, earlier = [name for name in NAMES[1:] if job in rig.node(name).jobs]
    rig.live_anew(earlier, 0)

    rig.crash(lost)
    (fresh,) = set(NAMES) - {"n1", lost, earlier}
    rig.run_until(lambda: job in rig.node(fresh).jobs, 60_000)

    assert rig.told == []
