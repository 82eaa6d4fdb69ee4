"""Why a connection of a worker has ended."""

from collections.abc import Sequence

import anyio
import attrs
import pytest

from disque_trio.client import streams
from disque_trio.client.address import Address
from disque_trio.client.errors import ConnectionFailedError
from disque_trio.statemachine.base import Reply
from disque_trio.worker.links import Link
from tests.client.fakenode import fake_node
from tests.worker.playing import KINDS


@attrs.define
class Listener:
    """Remembers the end of the connection."""

    end: ConnectionFailedError | None = None

    def greeted(self, link: Link, hello: Reply) -> None:
        """Nothing."""

    def received(self, link: Link, replies: Sequence[Reply]) -> None:
        """Nothing."""

    def refused(self, link: Link, error: str) -> None:
        """Nothing."""

    def lost(self, link: Link, error: ConnectionFailedError | None) -> None:  # noqa: ARG002
        """Remember why."""
        self.end = error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("said", "end"),
    [
        (b"-ERR max number of clients reached\r\n", "closed the connection: ERR max number of"),
        (b"*1\r\n:1\r\n", "Lost the connection"),
    ],
)
def test_what_a_node_says_before_it_hangs_up_is_why(kind: str, said: bytes, end: str) -> None:
    async def story() -> None:
        with fake_node({}, refusal=said) as node:
            link = Link(1, "n", Address(port=node.port), listener := Listener(), name="w")
            await link.serve(streams.connect, lambda: None)

        assert end in str(listener.end)
        assert "TLS" not in str(listener.end)  # it is a node

    anyio.run(story, backend=kind)
