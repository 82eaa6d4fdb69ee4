"""The order among queues is the same whatever is held."""

from collections import deque

import pytest

from disque_trio.statemachine.base import NULL_ARRAY, Reply
from disque_trio.worker.engine.records import SECOND, Done, Queue
from tests.worker.engine.talking import Talk, lease

PREFETCH = [(0, 0), (1, 0), (3, 0), (20, 0), (1_000, SECOND // 4)]


class Backlog:
    """A node with jobs in queues. It serves rounds of one job of each name, as a real one does."""

    def __init__(self, talk: Talk, **queues: int) -> None:
        self.talk = talk
        self.queues: dict[bytes, deque[bytes]] = {}
        self.count = 0
        for name, jobs in queues.items():
            self.add(name, jobs)

    def add(self, name: str, jobs: int) -> None:
        """Add jobs to a queue."""
        for _ in range(jobs):
            id = b"D-%-8b-%024d-05a1" % (name.encode(), self.count)
            self.queues.setdefault(name.encode(), deque()).append(id)
            self.count += 1

    def serve(self) -> None:
        """Answer what waits, but for GETJOB that finds nothing and may wait."""
        talk = self.talk
        for sends in list(talk.asked.values()):
            if any(send.words[:2] == (b"CLIENT", b"UNBLOCK") for send in sends):
                talk.greet()  # which answers it
                if talk.waits(b"GETJOB") is not None:
                    talk.answer(b"GETJOB", NULL_ARRAY)
        talk.greet()
        while talk.waits(b"ACKJOB") is not None:
            talk.answer(b"ACKJOB", 1)
        while (send := talk.waits(b"GETJOB")) is not None:
            jobs = self._take(send.words)
            if not jobs and b"NOHANG" not in send.words:
                return
            talk.answer(b"GETJOB", jobs or NULL_ARRAY)

    def _take(self, words: tuple[bytes, ...]) -> list[Reply]:
        names = words[words.index(b"FROM") + 1 :]
        left, found = int(words[words.index(b"COUNT") + 1]), []
        while left and any(self.queues.get(name) for name in names):
            for name in names:
                if left and self.queues.get(name):
                    found.append(lease(self.queues[name].popleft(), name, ms=3_600_000))
                    left -= 1
        return found

    def run(self, jobs: int) -> str:
        """Run so many, each for 10 ms; the first letters of their queues as they begin."""
        before = len(self.talk.starts)
        while len(self.talk.starts) < before + jobs:
            self.serve()
            started = self.talk.starts[-1]
            assert started in self.talk.engine.state.jobs, "nothing begins"
            self.talk.wait(10)
            self.serve()
            self.talk.finish(started, Done())
        return b"".join(id[2:3] for id in self.talk.starts[before : before + jobs]).decode()


def played(prefetch: tuple[int, int], *queues: Queue, strict: bool, **jobs: int) -> Backlog:
    """A worker with one slot, and a node with these jobs."""
    held, prefetch_window = prefetch
    known = [Queue(name=each.name, weight=each.weight, prefetch=held) for each in queues]
    talk = Talk(*known, concurrency=1, prefetch_window=prefetch_window, is_strict=strict)
    return Backlog(talk, **jobs)


HIGH, LOW = Queue(name=b"high"), Queue(name=b"low")


@pytest.mark.parametrize("prefetch", PREFETCH)
def test_strict_queues_are_run_in_their_order(prefetch: tuple[int, int]) -> None:
    node = played(prefetch, HIGH, LOW, strict=True, low=60, high=60)

    assert node.run(120) == "h" * 60 + "l" * 60


@pytest.mark.parametrize("prefetch", PREFETCH)
def test_what_comes_to_a_higher_queue_begins_before_what_is_held_of_a_lower_one(
    prefetch: tuple[int, int],
) -> None:
    node = played(prefetch, HIGH, LOW, strict=True, low=100)
    assert node.run(41) == "l" * 41
    node.add("high", 30)

    assert node.run(41).lstrip("l")[:30] == "h" * 30
    assert node.run(10) == "l" * 10


@pytest.mark.parametrize("prefetch", PREFETCH)
def test_queues_in_no_order_take_turns(prefetch: tuple[int, int]) -> None:
    node = played(prefetch, HIGH, LOW, strict=False, low=100, high=100)

    assert node.run(40).count("h") == 20


@pytest.mark.parametrize("prefetch", PREFETCH)
def test_queues_share_by_their_weights(prefetch: tuple[int, int]) -> None:
    high = Queue(name=b"high", weight=3)
    node = played(prefetch, high, LOW, strict=False, low=300, high=300)
    node.run(8)

    assert node.run(40).count("h") in range(29, 33)


@pytest.mark.parametrize("prefetch", PREFETCH)
def test_a_share_that_nobody_needs_is_for_others(prefetch: tuple[int, int]) -> None:
    high = Queue(name=b"high", weight=3)
    node = played(prefetch, high, LOW, strict=False, low=30)

    assert node.run(30) == "l" * 30


def test_a_higher_queue_at_its_limit_does_not_stop_the_others() -> None:
    talk = Talk(Queue(name=b"high", concurrency=1), LOW, concurrency=3, is_strict=True)
    node = Backlog(talk, high=5, low=5)
    node.serve()

    assert [id[2:3] for id in talk.starts] == [b"h", b"l", b"l"]


def test_a_wait_that_leaves_out_a_queue_is_ended_when_that_has_room() -> None:
    node = played((20, 0), HIGH, LOW, strict=True, low=100)
    node.run(60)

    asked = [b" ".join(send.words) for send in node.talk.said if send.words[0] == b"CLIENT"]
    assert any(b"UNBLOCK" in words for words in asked)
    assert node.talk.now < 2 * SECOND
