import uuid

import pytest

from disque_trio.pipeline.connector.adding import Added
from disque_trio.pipeline.connector.ledger import PREFIX, Ledger, TaskNotes, digest, finish, forget
from disque_trio.pipeline.connector.releasing import release
from disque_trio.pipeline.connector.rows import Row, Terms
from tests.cluster.processes import SOON_S, Cluster, Fleet, eventually
from tests.pipeline.connector.desk import Desk, lengths, name_of

HELD = Terms((b"DELAY", b"60", b"REPLICATE", b"2", b"RETRY", b"2"), 60)


def rows(queue: str, *bodies: str) -> list[Row]:
    return [Row(queue.encode(), body.encode(), HELD) for body in bodies]


class Task:
    """One attempt at task 0 of batch 7, as the sink does it."""

    def __init__(self, desk: Desk, cluster: Cluster, query: str) -> None:
        self.adder = desk.adder(cluster)
        self.ledger = Ledger(self.adder.nodes, query, 2)
        self.book = TaskNotes(self.ledger, 7, 0)

    def write(self, window: int, these: list[Row]) -> Added:
        what = digest(these)
        added = self.book.find(window, what)
        if added is None:
            added = self.adder.add(these)
            self.book.keep(window, what, added, self.adder.node)
        return added

    def commit(self, *windows: list[Row]) -> None:
        finish(self.ledger, 7, {0: [digest(each) for each in windows]})


@pytest.fixture
def query() -> str:
    return str(uuid.uuid4())


def test_a_window_that_was_added_is_not_added_again(
    desk: Desk, cluster: Cluster, query: str
) -> None:
    first = Task(desk, cluster, query)
    added = first.write(0, rows("same", "a", "b"))

    again = Task(desk, cluster, query)

    assert again.write(0, rows("same", "a", "b")) == added
    assert not again.adder.added.held
    release(again.ledger.nodes, added.held)
    assert lengths(cluster, "same") == 2


def test_jobs_of_other_rows_are_undone(desk: Desk, cluster: Cluster, query: str) -> None:
    old = Task(desk, cluster, query).write(0, rows("other", "a", "b"))

    new = Task(desk, cluster, query).write(0, rows("other", "b", "a"))

    assert new != old
    gone = [job.encode() for ids in old.held.values() for job in ids]
    eventually(lambda: not any(map(cluster.holders, gone)), SOON_S, "the first ones are gone")
    assert len(Ledger(desk.nodes(cluster), query, 2).read()) == 1


def test_what_is_committed_is_added_no_more(desk: Desk, cluster: Cluster, query: str) -> None:
    first = Task(desk, cluster, query)
    first.write(0, rows("over", "a"))
    first.commit(rows("over", "a"))

    again = Task(desk, cluster, query)

    assert again.write(0, rows("over", "a")) == Added()
    # But for what was not in it: after a step back to an older checkpoint, for instance.
    assert again.write(1, rows("over", "b")).held
    assert again.write(0, rows("over", "c")).held


def test_a_commit_leaves_one_note_and_undoes_what_is_not_its_own(
    desk: Desk, cluster: Cluster, query: str
) -> None:
    task = Task(desk, cluster, query)
    task.write(0, rows("left", "a"))
    stray = task.write(1, rows("left", "b"))  # of an earlier run with more rows

    task.commit(rows("left", "a"))

    ((_, note),) = task.ledger.read().values()
    assert note.added is None
    gone = [job.encode() for ids in stray.held.values() for job in ids]
    eventually(lambda: not any(map(cluster.holders, gone)), SOON_S, "the stray one is gone")


def test_a_batch_that_is_given_up_leaves_nothing(desk: Desk, cluster: Cluster, query: str) -> None:
    task = Task(desk, cluster, query)
    added = task.write(0, rows("up", "a"))

    forget(task.ledger, 7)

    assert not task.ledger.read()
    gone = [job.encode() for ids in added.held.values() for job in ids]
    eventually(lambda: not any(map(cluster.holders, gone)), SOON_S, "its job is gone")
    assert lengths(cluster, PREFIX + query) == 0


def test_a_note_of_a_node_that_has_just_died_is_there(desk: Desk, fleet: Fleet, query: str) -> None:
    cluster = fleet.cluster(3)
    task = Task(desk, cluster, query)
    added = task.write(0, rows("outlives", "a"))
    ((_, (node, _)),) = task.ledger.read().items()
    dead = next(server for server in cluster.servers if name_of(server) == node)

    dead.kill()

    ledger = Ledger(desk.nodes(cluster), query, 2)
    ((holder, note),) = ledger.read().values()
    assert note.added == added
    assert holder != node

    # It is dropped like any other, though nobody can tell the one that is dead.
    ledger.drop([(holder, job) for job in ledger.read()])
    assert not ledger.read()


def test_what_comes_to_light_after_a_commit_is_undone_by_the_next(
    desk: Desk, cluster: Cluster, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Task(desk, cluster, query)
    task.write(0, rows("dark", "a"))
    stray = task.write(1, rows("dark", "b"))
    read = Ledger.read
    monkeypatch.setattr(
        Ledger, "read", lambda ledger: {k: n for k, n in read(ledger).items() if not n[1].added}
    )
    task.commit(rows("dark", "a"))
    monkeypatch.undo()

    finish(task.ledger, 8, {})

    gone = [job.encode() for ids in stray.held.values() for job in ids]
    eventually(lambda: not any(map(cluster.holders, gone)), SOON_S, "the stray one is gone")
    ((_, note),) = task.ledger.read().values()
    assert note.batch == 8
