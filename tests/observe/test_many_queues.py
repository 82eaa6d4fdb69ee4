"""Five thousand queues: nothing is asked for, or done at once, for all of them."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.client import Client
from disque_trio.client.command import Command
from disque_trio.observe import client as deadline_client
from disque_trio.observe import queue_counts as counting
from disque_trio.observe.client import Silence
from disque_trio.observe.queue_counts import QueueCounts
from disque_trio.observe.queue_stats import FEW, MANY, SOME
from tests.observe.rig import Observed, observed

COUNT = 5000


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take long for an answer, which is not what is tried here."""
    monkeypatch.setattr(deadline_client, "ANSWER_S", 60.0)


async def filled(nursery: trio.Nursery) -> Observed:
    seen = await observed(nursery)
    # One copy of each name: the machine is asked as a client asks it.
    added = [commands.addjob(f"q{n:05}", "x", replicate=1) for n in range(COUNT)]
    assert all(isinstance(each, str) for each in await seen.client.run_all(added))
    return seen


@pytest.mark.slow
async def test_pages_of_very_many_queues_ask_for_little(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await filled(nursery)
    monkeypatch.setattr(counting, "FIRST_REST", 0)
    asked: list[list[bytes]] = []
    ask = Client._exchange

    async def noted(self: Client, address: Address, words: Sequence[Command[Any]]) -> Any:
        asked.append([each.words[0] for each in words])
        return await ask(self, address, words)

    monkeypatch.setattr(Client, "_exchange", noted)
    await seen.observer.counts.once()

    scans = [each for each in asked if each == [b"QSCAN"]]
    assert len(scans) >= COUNT // MANY, "no answer has very many queues"
    assert seen.observer.counts.totals()["queued"] == COUNT
    asked.clear()

    first, _ = await seen.observer.answer("queues", {"sort": "name", "desc": False})
    last, _ = await seen.observer.answer("queues", {"sort": "name", "desc": False, "page": 49})

    assert (first["total"], first["pages"]) == (COUNT, 50)
    assert [row["name"] for row in first["rows"]] == [f"q{n:05}" for n in range(100)]
    assert [row["name"] for row in last["rows"]] == [f"q{n:05}" for n in range(4900, COUNT)]
    about_queues = [each for each in asked if b"QSTAT" in each]
    assert sum(map(len, about_queues)) == 200, "the rows that are shown, and no others"
    assert max(map(len, about_queues)) <= FEW


async def test_passes_after_the_first_take_a_few_queues_at_a_time(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await filled(nursery)
    for rest in ("FIRST_REST", "REST"):
        monkeypatch.setattr(counting, rest, 0)
    await seen.observer.counts.once()
    pages: list[int] = []
    take = QueueCounts._take

    async def noted(
        self: QueueCounts, address: Address, names: list[str], figures: list[bytes]
    ) -> None:
        pages.append(len(names))
        await take(self, address, names, figures)

    monkeypatch.setattr(QueueCounts, "_take", noted)
    await seen.observer.counts.once()

    assert sum(pages) == COUNT
    assert max(pages) <= SOME


async def test_queues_that_have_gone_are_left_out_after_a_pass(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await observed(nursery)
    monkeypatch.setattr(counting, "PIECE", 2)
    for n in range(5):
        await seen.client.addjob(f"q{n}", "x", replicate=1)
    await seen.observer.counts.once()
    state = seen.nodes[0].state
    for name in (b"q1", b"q4"):
        state.queues.pop(name)

    await seen.observer.counts.once()

    assert sorted(seen.observer.counts.parts) == ["q0", "q2", "q3"]
    assert seen.observer.counts.totals()["queued"] == 3


async def test_a_node_without_figures_in_its_scans_is_counted_all_the_same(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await observed(nursery)
    for n in range(50):
        await seen.client.addjob(f"q{n}", "x", replicate=1)
    monkeypatch.setattr(counting, "_FEATURE", "what no node knows")

    await seen.observer.counts.once()

    assert len(seen.observer.counts.parts) == 50
    assert seen.observer.counts.totals()["queued"] == 50


async def test_a_node_that_has_left_is_in_no_sum(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    other, where = await filled_at_the_second(seen)

    seen.client.nodes.failed(other, "it has gone", 0.0)
    seen.client.nodes._forget({str(seen.client.nodes.seeds[0])})
    await seen.observer.counts.once()

    assert counted(seen) == (2, {"both"})
    assert seen.observer.counts.queued_at(where) is None


async def test_a_silent_node_counts_as_it_was_for_some_minutes_and_not_for_ever(
    nursery: trio.Nursery,
) -> None:
    seen = await observed(nursery, 2)
    _, where = await filled_at_the_second(seen)
    seen.client.silent[where] = Silence(trio.current_time(), "it is away")

    await seen.observer.counts.once()
    assert counted(seen) == (5, {"both", "theirs"})
    assert seen.observer.counts.queued_at(where) == 3

    seen.client.silent[where] = Silence(trio.current_time() - 301, "it is away")
    await seen.observer.counts.once()
    assert counted(seen) == (2, {"both"})
    assert seen.observer.counts.queued_at(where) is None
    assert where not in seen.observer.counts._sums

    del seen.client.silent[where]
    await seen.observer.counts.once()
    assert counted(seen) == (5, {"both", "theirs"})


async def test_a_node_that_answers_stays_however_long_another_takes_to_be_counted(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await observed(nursery, 2)
    await filled_at_the_second(seen)
    monkeypatch.setattr(counting, "LATEST_S", 0.0)

    await seen.observer.counts._leave_out(set(seen.observer.counts._reported))

    assert counted(seen) == (5, {"both", "theirs"})


async def filled_at_the_second(seen: Observed) -> tuple[Address, str]:
    """Two jobs at the first node; three at the second, whose address is returned, too."""
    for node, names in zip(seen.nodes, (["both"] * 2, ["both", "theirs", "theirs"]), strict=True):
        address = Address(port=node.state.config.port)
        added = [commands.addjob(name, "x", replicate=1) for name in names]
        told = await seen.client.ask(address, added)
        assert all(isinstance(each, str) for each in told)
    await seen.observer.counts.once()
    assert counted(seen) == (5, {"both", "theirs"})
    return address, str(address)


def counted(seen: Observed) -> tuple[int, set[str]]:
    counts = seen.observer.counts
    return counts.totals()["queued"], set(counts.parts)
