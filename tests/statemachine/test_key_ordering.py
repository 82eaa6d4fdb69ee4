"""IFEXISTS again and replace: when the new job is queued, and what becomes of the earlier one."""

import pytest

from disque_trio.statemachine import key_index, key_ordering
from disque_trio.statemachine.base import ACTIVE, QUEUED, Status
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.extensions import FOLLOWS, HAS_FOLLOWED
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.key_facts import DONE_KEPT, ENDED, MOVED, WITH_WORKER, KeyFact
from disque_trio.statemachine.messages import KeyClaim
from tests.cluster_rig import ClusterRig
from tests.rig import JOB
from tests.statemachine.keying import EARLY, ask, claims, fact, held, keyed_rig, say, say_all

A, B, C = NODES = ("a", "b", "c")
AGAIN = ("UNIQUE", "k", "IFEXISTS", "again")
REPLACE = ("UNIQUE", "k", "IFEXISTS", "replace")


def formed(config: Config | None = None) -> ClusterRig:
    """Three nodes that know each other."""
    rig = ClusterRig(*NODES, config=config)
    rig.form()
    rig.run(2000)
    return rig


@pytest.fixture
def rig() -> ClusterRig:
    return formed()


def add(rig: ClusterRig, name: str, body: str, *options: str | int) -> bytes:
    """The id with which an ADDJOB is answered."""
    words = options if "UNIQUE" in options else ("UNIQUE", "k", *options)
    reply = rig.ask(name, "ADDJOB", "q", body, 0, "RETRY", 10, *words, within=5000)
    assert isinstance(reply, Status), reply
    return reply.text


def take(rig: ClusterRig, name: str) -> tuple[bytes, bytes] | None:
    """Id and body of the next job, if one comes within 200 ms."""
    found = rig.ask(name, "GETJOB", "TIMEOUT", 200, "FROM", "q")
    if not isinstance(found, list):
        return None
    [job] = found
    assert isinstance(job, list)
    _, id, body = job
    assert isinstance(id, bytes)
    assert isinstance(body, bytes)
    return id, body


def taken(rig: ClusterRig, name: str, client: Client) -> list[bytes]:
    """The jobs that a worker who waits has got."""
    jobs: list[bytes] = []
    for reply in rig.replies(name, client):
        for job in reply if isinstance(reply, list) else []:
            assert isinstance(job, list)
            assert isinstance(job[1], bytes)
            jobs.append(job[1])
    return jobs


def wait_for(rig: ClusterRig, name: str) -> Client:
    """A worker that waits."""
    return rig.request(name, "GETJOB", "TIMEOUT", 60_000, "FROM", "q", client=rig.connect(name))


def ids(rig: ClusterRig) -> set[bytes]:
    return {id for name in rig.names() for id in rig.node(name).jobs}


def copies(rig: ClusterRig, id: bytes) -> list[Job]:
    return [rig.node(name).jobs[id] for name in rig.names() if id in rig.node(name).jobs]


# again


@pytest.mark.parametrize("replicate", [1, 3])
@pytest.mark.parametrize("worker", [A, B])
def test_a_wish_is_delivered_when_the_job_is_acknowledged(
    rig: ClusterRig, replicate: int, worker: str
) -> None:
    first = add(rig, A, "one", "REPLICATE", replicate)
    assert take(rig, worker) == (first, b"one")

    second = add(rig, C, "two", *AGAIN, "REPLICATE", replicate)
    assert second != first
    assert take(rig, C) is None
    rig.ask(worker, "ACKJOB", first)

    assert take(rig, C) == (second, b"two")
    assert take(rig, A) is None
    rig.ask(C, "ACKJOB", second)
    rig.run(5000)
    assert not ids(rig)


def test_a_wish_comes_within_a_few_messages_of_the_acknowledgement(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    add(rig, B, "two", *AGAIN)
    rig.run(3000)
    waiting = wait_for(rig, C)
    rig.request(A, "ACKJOB", first)

    rig.run(20)

    assert rig.replies(C, waiting)


def test_one_wish_is_kept(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    second = add(rig, B, "two", *AGAIN)

    assert add(rig, C, "three", *AGAIN) == second
    assert ids(rig) == {first, second}


def test_wishes_at_the_same_moment_are_one(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    clients = [rig.connect(name) for name in NODES]

    for name, client in zip(NODES, clients, strict=True):
        rig.request(name, "ADDJOB", "q", name, 0, *AGAIN, client=client)
    rig.run(1000)

    replies = [rig.replies(*pair) for pair in zip(NODES, clients, strict=True)]
    [second] = {reply.text for [reply] in replies if isinstance(reply, Status)}
    assert ids(rig) == {first, second}


def test_without_leases_a_job_that_was_delivered_is_with_a_worker_until_it_is_given_back() -> None:
    rig = formed(Config(cluster_node_timeout=2000, delivery_lease=False))
    first = add(rig, A, "one")
    assert add(rig, B, "two", *AGAIN) == first  # in the queue

    assert take(rig, A) == (first, b"one")
    rig.ask(A, "NACK", first, "DELAY", 20)
    assert add(rig, B, "two", *AGAIN) == first  # backing off
    rig.run(25_000)
    assert take(rig, B) == (first, b"one")

    second = add(rig, C, "two", *AGAIN)
    assert second != first
    rig.ask(B, "ACKJOB", first)
    assert take(rig, C) == (second, b"two")


def test_again_is_as_return_while_the_job_waits(rig: ClusterRig) -> None:
    first = add(rig, A, "one")

    assert add(rig, B, "two", *AGAIN) == first


def test_again_adds_a_job_if_none_has_the_key(rig: ClusterRig) -> None:
    only = add(rig, A, "one", *AGAIN)

    assert take(rig, A) == (only, b"one")


def test_return_tells_the_job_that_has_the_key_not_the_one_that_waits_for_it(
    rig: ClusterRig,
) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    add(rig, B, "two", *AGAIN)

    assert add(rig, C, "three") == first


def test_a_wish_does_not_die_with_the_node_of_its_producer(rig: ClusterRig) -> None:
    first = add(rig, A, "one", "REPLICATE", 1)
    take(rig, A)
    second = add(rig, C, "two", *AGAIN, "REPLICATE", 3)
    rig.crash(C)
    rig.run(100)
    rig.ask(A, "ACKJOB", first)

    waiting = wait_for(rig, B)
    rig.run(15_000)

    assert taken(rig, B, waiting) == [second]


def test_a_wish_is_delivered_though_the_node_of_its_producer_is_back_without_it(
    rig: ClusterRig,
) -> None:
    first = add(rig, A, "one", "REPLICATE", 1)
    take(rig, A)
    second = add(rig, C, "two", *AGAIN, "REPLICATE", 3)
    rig.crash(C)
    rig.start(C)
    rig.run(1000)
    assert rig.peer(A, C) in rig.node(A).cluster.reachable
    assert second not in rig.node(C).jobs
    rig.ask(A, "ACKJOB", first)

    waiting = wait_for(rig, B)
    rig.run(15_000)

    assert taken(rig, B, waiting) == [second]


def test_one_node_goes_on_asking_about_a_wish(rig: ClusterRig) -> None:
    add(rig, A, "one", "RETRY", 100, "REPLICATE", 1)
    take(rig, A)
    second = add(rig, C, "two", *AGAIN, "REPLICATE", 3)
    rig.run(15_000)

    assert askers(rig, second) == [C]


def test_a_node_of_the_others_asks_if_that_of_the_producer_has_ended(rig: ClusterRig) -> None:
    add(rig, A, "one", "RETRY", 100, "REPLICATE", 1)
    take(rig, A)
    second = add(rig, C, "two", *AGAIN, "REPLICATE", 3)
    rig.crash(C)
    rig.run(15_000)

    assert len(askers(rig, second)) == 1


@pytest.mark.parametrize("delay", [0, 1])
def test_a_wish_that_was_handed_over_comes_when_the_job_ends_not_a_period_later(
    rig: ClusterRig, delay: int
) -> None:
    first = add(rig, A, "one", "RETRY", 100, "REPLICATE", 1)
    take(rig, A)
    rig.ask(C, "CLUSTER", "LEAVING", "yes")
    second = add(rig, C, "two", *AGAIN, "REPLICATE", 2, "RETRY", 300, "DELAY", delay)
    assert second not in rig.node(C).jobs
    rig.run(3000)
    assert len(askers(rig, second)) == 1
    rig.ask(A, "ACKJOB", first)
    rig.run(1000)

    delivered = take(rig, A)

    assert delivered is not None
    assert delivered[0] == second


def askers(rig: ClusterRig, id: bytes) -> list[str]:
    """The nodes that ask about the jobs before this one."""
    return [
        name
        for name in rig.names()
        if id in rig.node(name).jobs
        if key_index.search_for(rig.node(name), rig.node(name).jobs[id]) is not None
    ]


def test_a_wish_is_not_delivered_while_the_worker_goes_on(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    add(rig, B, "two", *AGAIN)
    waiting = [wait_for(rig, name) for name in NODES]

    for _ in range(8):
        rig.ask(A, "WORKING", first)
        rig.run(5000)

    assert [rig.replies(*pair) for pair in zip(NODES, waiting, strict=True)] == [[], [], []]


def test_a_wish_is_delivered_when_the_job_has_died(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    second = add(rig, B, "two", *AGAIN)

    rig.ask(A, "NACK", first, "DEAD", "broken")

    assert take(rig, C) == (second, b"two")


def test_a_wish_is_delivered_when_the_job_has_expired(rig: ClusterRig) -> None:
    add(rig, A, "one", "TTL", 12)
    take(rig, A)
    second = add(rig, B, "two", *AGAIN)
    waiting = wait_for(rig, C)
    rig.run(14_000)

    [came] = taken(rig, C, waiting)
    if came != second:
        assert take(rig, C) == (second, b"two")


def test_a_wish_has_its_own_delay(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    second = add(rig, B, "two", *AGAIN, "DELAY", 5)
    rig.run(100)
    rig.ask(A, "ACKJOB", first)
    rig.run(4000)
    assert take(rig, B) is None

    rig.run(1500)

    assert take(rig, B) == (second, b"two")


def shown(rig: ClusterRig, name: str, id: bytes) -> dict[object, object]:
    """What SHOW says of the job."""
    reply = rig.ask(name, "SHOW", id)
    assert isinstance(reply, list)
    return dict(zip(reply[::2], reply[1::2], strict=True))


def test_show_says_that_a_job_follows(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    second = add(rig, B, "two", *AGAIN)
    assert shown(rig, B, second)[b"follows"] == FOLLOWS

    rig.ask(A, "ACKJOB", first)
    rig.run(100)

    assert shown(rig, B, second)[b"follows"] == HAS_FOLLOWED


def test_a_client_can_have_it_queued_at_once(rig: ClusterRig) -> None:
    add(rig, A, "one")
    take(rig, A)
    second = add(rig, B, "two", *AGAIN)

    assert rig.ask(B, "ENQUEUE", second) == 1

    assert take(rig, B) == (second, b"two")


def test_a_job_that_is_held_back_does_not_reach_its_limit(rig: ClusterRig) -> None:
    first = add(rig, A, "one", "LIMIT", 5)
    take(rig, A)
    second = add(rig, B, "two", *AGAIN, "LIMIT", 1)
    for _ in range(8):
        rig.ask(A, "WORKING", first)
        rig.run(5000)
    rig.ask(A, "ACKJOB", first)

    assert take(rig, B) == (second, b"two")


def test_a_job_of_at_most_one_delivery_can_follow(rig: ClusterRig) -> None:
    first = add(rig, A, "one")
    take(rig, A)
    words = ("ADDJOB", "q", "two", 0, "RETRY", 0, "REPLICATE", 1, *AGAIN)
    second = rig.ask(B, *words)
    assert isinstance(second, Status)
    rig.run(3000)
    rig.ask(A, "ACKJOB", first)

    assert take(rig, B) == (second.text, b"two")


def test_an_earlier_job_that_is_on_its_way_is_asked_for_again() -> None:
    keyed = keyed_rig()
    ask(keyed, "IFEXISTS", "again")
    say_all(keyed, held(stamp=EARLY, state=WITH_WORKER))
    [job] = keyed.node.jobs.values()
    keyed.advance(key_ordering.LOOK_EVERY)

    for to, claim in claims(keyed):
        say(keyed, to, claim, fact(MOVED, stamp=EARLY))
    assert job.state == ACTIVE

    keyed.advance(key_ordering.LOOK_EVERY)
    say_all(keyed, KeyFact(JOB, EARLY, ENDED, DONE_KEPT, 0))
    assert job.state == QUEUED


def test_two_keys_are_followed_at_once(rig: ClusterRig) -> None:
    for key in ("k", "l"):
        first = add(rig, A, "one", "UNIQUE", key)
        take(rig, A)
        add(rig, B, "two", "UNIQUE", key, "IFEXISTS", "again")
        add(rig, B, "three", "UNIQUE", key, "IFEXISTS", "replace")
        rig.ask(A, "ACKJOB", first)
    rig.run(1000)

    assert take(rig, C) is not None
    assert take(rig, C) is not None
    assert take(rig, C) is None


@pytest.mark.pure  # a constant is set, which the compiled form has built in
def test_many_jobs_that_wait_are_asked_about_less_often(
    rig: ClusterRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_ordering, "LOOKS_A_SECOND", 5)
    for number in range(20):
        key = ("UNIQUE", f"k{number}", "RETRY", 300)
        add(rig, A, "one", *key)
        assert take(rig, A)
        add(rig, A, "two", *key, "IFEXISTS", "again")
    rig.run(10_000)
    before = len(rig.sent(KeyClaim, A, B))

    rig.run(20_000)

    assert 80 <= len(rig.sent(KeyClaim, A, B)) - before <= 120


def test_a_node_that_comes_while_a_job_waits_is_asked_too() -> None:
    rig = ClusterRig(*NODES, "d")
    rig.meet(A, B)
    rig.meet(A, C)
    rig.run(4000)
    first = add(rig, A, "one", "REPLICATE", 1)
    take(rig, A)
    second = add(rig, B, "two", *AGAIN, "REPLICATE", 1)
    rig.run(5000)
    rig.meet(A, "d")
    rig.run(3000)
    worker = wait_for(rig, "d")
    rig.ask(A, "NACK", first)
    rig.run(500)
    assert taken(rig, "d", worker) == [first]

    rig.crash(A)
    rig.run(8000)
    assert take(rig, C) is None

    rig.ask("d", "ACKJOB", first)
    assert take(rig, C) == (second, b"two")
