import pytest

from disque_trio.client.address import Address, Cluster
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.queue_counts import Part, QueueCounts
from disque_trio.observe.queue_list import SORTS, Order, Query, QueueLists
from disque_trio.observe.queue_stats import NOTHING, Stats
from disque_trio.worker.operating.notes import RESERVED
from disque_trio.worker.operating.plans import MistakeError

COUNT = 3000
ALL = range(COUNT)


def counts() -> QueueCounts:
    """Queues q0000 and so on at one node, each tenth at a second one too, in no order."""
    found = QueueCounts(DeadlineClient(Cluster([Address()])))
    for number in ALL:
        jobs = (number * 7919) % 100
        stats = NOTHING._replace(length=jobs, blocked=number % 3, made=1 + number)
        stats = stats._replace(pause="in" if number % 500 == 0 else "none")
        parts = {"a": part(stats)}
        if number % 10 == 0:
            parts["b"] = part(stats)
        found.parts[f"q{number:04}"] = parts
    found.parts[f"{RESERVED}x"] = {"a": part(NOTHING)}
    return found


def part(stats: Stats) -> Part:
    return Part(stats, 0.0, 0, 0)


def jobs_of(number: int) -> int:
    return (number * 7919) % 100 * (2 if number % 10 == 0 else 1)


async def in_order(lists: QueueLists, *, by: str = "jobs", match: str = "", only: str = "",
                   is_reversed: bool = False) -> list[str]:  # fmt: skip
    order = await lists.get(Query(by, match, only, is_reversed))
    return await order.names(0, order.total)


async def test_what_is_most_comes_first_and_names_decide_among_equals() -> None:
    lists = QueueLists(counts())
    wanted = [f"q{n:04}" for n in sorted(ALL, key=lambda n: (-jobs_of(n), n))]

    assert await in_order(lists) == wanted
    assert await in_order(lists, is_reversed=True) == wanted[::-1]
    assert await in_order(lists, by="name") == sorted(wanted)


async def test_all_that_can_be_sorted_by_gives_each_queue_once() -> None:
    lists = QueueLists(counts())

    for by in SORTS:
        assert sorted(await in_order(lists, by=by)) == [f"q{n:04}" for n in ALL]


async def test_what_does_not_fit_is_left_out() -> None:
    lists = QueueLists(counts())

    assert len(await in_order(lists, match="q00")) == 100
    assert await in_order(lists, match="q0?07", by="name") == [f"q0{n}07" for n in range(10)]
    assert await in_order(lists, only="paused", by="name") == [
        f"q{n:04}" for n in range(0, COUNT, 500)
    ]
    assert await in_order(lists, only="stuck", by="name") == [
        f"q{n:04}" for n in ALL if jobs_of(n) and n % 3 == 0
    ]
    assert await in_order(lists, only="limited") == []
    assert await in_order(lists, match=RESERVED) == [f"{RESERVED}x"], "the library's own"
    assert await in_order(lists, match="nothing like it") == []


async def test_a_queue_whose_workers_all_run_jobs_is_not_stuck() -> None:
    busy = counts()
    busy.parts = {"q": {"a": part(NOTHING._replace(length=3)), "b": part(NOTHING)}}
    assert await in_order(QueueLists(busy), only="stuck") == ["q"]

    busy.served = {"q"}
    assert await in_order(QueueLists(busy), only="stuck") == []

    busy.served = set()
    busy.parts["q"]["b"] = part(NOTHING._replace(leased=1))

    assert await in_order(QueueLists(busy), only="stuck") == []


async def test_a_page_far_behind_is_the_same_as_reached_step_by_step() -> None:
    lists = QueueLists(counts())
    query = Query("jobs", "", "", False)
    order = await lists.get(query)
    stepped = [await order.names(n, n + 100) for n in range(0, 2000, 100)]

    other = await QueueLists(lists.counts).get(query)

    assert await other.names(1900, 2000) == stepped[-1]
    assert await other.names(0, 100) == stepped[0]


async def test_one_order_serves_all_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Query] = []
    original = QueueLists._made

    async def noted(self: QueueLists, query: Query) -> Order:
        made.append(query)
        order = await original(self, query)
        order.until = float("inf")
        return order

    monkeypatch.setattr(QueueLists, "_made", noted)
    lists = QueueLists(counts())
    query = Query("age", "", "", False)

    for page in range(5):
        await (await lists.get(query)).names(page * 100, page * 100 + 100)

    assert made == [query]


def test_what_there_is_not_is_refused_with_what_there_is() -> None:
    with pytest.raises(MistakeError, match="cannot be sorted by 'size': jobs, age, "):
        Query("size", "", "", False).check()
    with pytest.raises(
        MistakeError, match="only='busy' is not one of stuck, paused, dead, limited"
    ):
        Query("jobs", "", "busy", False).check()
