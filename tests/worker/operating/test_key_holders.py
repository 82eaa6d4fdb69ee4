"""What several nodes say of keys is one answer."""

from collections.abc import Sequence
from typing import Any, Final

import anyio
import attrs
import pytest
import trio.testing

from disque_trio.client.address import Address
from disque_trio.client.command import Command
from disque_trio.client.errors import ConnectionFailedError, DisqueError
from disque_trio.client.nodes import Nodes, NoNodeError
from disque_trio.client.records import KeyHolder
from disque_trio.worker.operating.key_holders import PATIENCE_S, is_held, key_holder, key_holders

ONE, TWO, THREE = (Address(host="h", port=port) for port in (1, 2, 3))
LOST: Final = ConnectionFailedError("it is lost")


@attrs.define
class Told:
    """A client of nodes that answer so."""

    answers: dict[Address, list[KeyHolder | None] | DisqueError | None]
    """None never comes."""
    asked: list[tuple[bytes, ...]] = attrs.Factory(list)

    @property
    def nodes(self) -> Nodes:
        return Nodes(list(self.answers))

    async def run(self, _: Command[Any]) -> Any:
        return None

    async def ask(self, address: Address, asked: Sequence[Command[Any]]) -> Any:
        self.asked += [each.words for each in asked]
        answer = self.answers[address]
        if answer is None:
            await anyio.sleep_forever()
        if isinstance(answer, DisqueError):
            raise answer
        return answer


def holder(id: str, state: str, node: str, *queued_at: str) -> KeyHolder:
    return KeyHolder(id=id, state=state, nodes=(node,), queued_at=queued_at)


def test_each_node_is_asked_for_what_it_knows_itself() -> None:
    client = Told({ONE: [None], TWO: [None]})
    assert anyio.run(key_holder, client, ("q", "k")) is None
    assert client.asked == 2 * [(b"SHOW", b"KEY", b"q", b"k", b"LOCAL")]


def test_the_answers_of_those_that_live_are_joined_in_the_order_of_the_keys() -> None:
    client = Told(
        {
            ONE: [holder("a", "waiting", "n1"), None, holder("c", "done-kept", "n1")],
            TWO: LOST,
            THREE: [holder("a", "queued", "n3", "n3"), None, holder("c", "with-worker", "n3")],
        }
    )
    found = anyio.run(key_holders, client, [("q", "k"), ("q", "l"), ("q", "m")])
    assert found == [
        KeyHolder(id="a", state="queued", nodes=("n1", "n3"), queued_at=("n3",)),
        None,
        KeyHolder(id="c", state="done-kept", nodes=("n1", "n3"), queued_at=()),
    ]


def test_a_job_that_has_ended_yields_to_the_next_one_with_its_key() -> None:
    client = Told({ONE: [holder("a", "done-kept", "n1")], TWO: [holder("b", "queued", "n2")]})
    found = anyio.run(key_holder, client, ("q", "k"))
    assert found is not None
    assert found.id == "b"


def test_a_silent_node_is_waited_for_some_seconds() -> None:
    async def story() -> None:
        began = anyio.current_time()
        found = await key_holder(Told({ONE: None, TWO: [holder("a", "queued", "n2")]}), ("q", "k"))
        assert found is not None
        assert anyio.current_time() - began == pytest.approx(PATIENCE_S)

    clock = trio.testing.MockClock(autojump_threshold=0)
    anyio.run(story, backend="trio", backend_options={"clock": clock})


def test_one_node_that_knows_a_holder_is_enough() -> None:
    async def story() -> None:
        began = anyio.current_time()
        assert await is_held(Told({ONE: None, TWO: [holder("a", "queued", "n2")]}), ("q", "k"))
        assert anyio.current_time() == began
        assert not await is_held(Told({ONE: None, TWO: [None]}), ("q", "k"))
        assert anyio.current_time() - began == pytest.approx(PATIENCE_S)

    clock = trio.testing.MockClock(autojump_threshold=0)
    anyio.run(story, backend="trio", backend_options={"clock": clock})


@pytest.mark.parametrize("asks", [key_holder, is_held])
def test_without_an_answer_nothing_is_known(asks: Any) -> None:
    with pytest.raises(NoNodeError):
        anyio.run(asks, Told({ONE: LOST, TWO: LOST}), ("q", "k"))
