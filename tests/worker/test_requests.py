"""Jobs whose answer is lost, or that nodes refuse."""

from typing import Any

import pytest

from disque_trio.client import DuplicateJobError, LostError, NotReplicatedError
from disque_trio.statemachine.base import Failure
from disque_trio.worker import Enqueued, EnqueueUnknownError, requests
from tests.client.running import KINDS
from tests.worker.test_enqueue import ADDED, ID, Adder, added, app_with, node_that_adds, talk

pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_a_job_is_added_again_with_its_key_when_the_answer_is_lost(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        job = await adder.add(task, "ada")

        assert job.id == ID
        assert [body["key"] for _, body, _ in added(node)] == [job.key, job.key]

    with node_that_adds(None, ADDED) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_a_job_whose_answer_is_lost_twice_is_unknown(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        with pytest.raises(EnqueueUnknownError, match=r"job mine of mail.send"):
            await adder.add(task.using(key="mine"), "ada")
        assert len(added(node)) == 2

    with node_that_adds(None) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


@pytest.mark.parametrize(
    "options", [{"repeat": False}, {"unique": "today", "on_conflict": "reject"}]
)
def test_a_job_that_must_not_be_repeated_is_sent_once(kind: str, options: Any) -> None:
    async def conversation(adder: Adder) -> None:
        with pytest.raises(EnqueueUnknownError) as raised:
            await adder.add(task.using(**options), "ada")
        assert isinstance(raised.value.__cause__, LostError)
        assert len(added(node)) == 1

    with node_that_adds(None) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


LATE = Failure(b"NOREPL Timeout reached before all nodes have said whether the key is free")
TOO_FEW = Failure(b"NOREPL Not enough reachable nodes for the requested replication level")


def test_a_job_is_added_again_while_a_lost_node_is_awaited(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        job = await adder.add(task, "ada")

        assert job.id == ID
        assert [body["key"] for _, body, _ in added(node)] == 3 * [job.key]

    with node_that_adds([LATE], [LATE], ADDED) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_of_many_jobs_those_that_a_lost_node_delays_are_added_again(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        calls = [task.call("a"), task.using(repeat=False).call("b"), task.call("c")]

        one, two, three = await adder.add_many(calls)

        assert [type(each) for each in (one, two, three)] == [
            Enqueued, NotReplicatedError, Enqueued
        ]  # fmt: skip
        assert [body["args"][0] for _, body, _ in added(node)] == ["a", "b", "c", "a"]

    with node_that_adds([LATE], [LATE], ADDED) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_too_few_nodes_refuse_a_job_at_once(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        with pytest.raises(NotReplicatedError, match="Not enough reachable nodes"):
            await adder.add(task, "ada")
        assert len(added(node)) == 1

    with node_that_adds([TOO_FEW]) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_a_node_that_stays_lost_refuses_a_job_in_the_end(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "OUTAGE_S", 0.5)

    async def conversation(adder: Adder) -> None:
        with pytest.raises(NotReplicatedError, match="whether the key is free"):
            await adder.add(task, "ada")
        assert len(added(node)) > 1

    with node_that_adds([LATE]) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)


def test_a_refusal_is_raised_as_the_client_raises_it(kind: str) -> None:
    async def conversation(adder: Adder) -> None:
        with pytest.raises(DuplicateJobError) as raised:
            await adder.add(task.using(unique="today", on_conflict="reject"), "ada")
        assert (raised.value.job_id, raised.value.state) == (ID, "queued")

    with node_that_adds([Failure(b"DUPLICATE %b queued" % ID.encode())]) as node:
        app, task = app_with(node)
        talk(kind, app, conversation)
