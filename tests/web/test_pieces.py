"""Large answers of the console."""

import json
from typing import Any

import pytest
import trio

from disque_trio.observe.values import encoded
from disque_trio.web.pieces import PIECE, encoded_in_turns, send
from tests.web.browser import console
from tests.web.turns import turns_beside

DATA = {"total": 3, "rows": [{"name": "é" * 40_000, "n": n} for n in range(9)], "none": []}


async def test_what_is_encoded_in_turns_is_the_same_json() -> None:
    assert json.loads(await encoded_in_turns(DATA)) == DATA
    assert await encoded_in_turns(DATA) == encoded(DATA)
    assert await encoded_in_turns({}) == "{}"


async def test_others_have_their_turn_after_each_large_row() -> None:
    turns, _ = await turns_beside(lambda: encoded_in_turns(DATA))

    assert turns >= 8


class Recorded:
    """A socket that takes all."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.ends: list[bool] = []

    async def send_message(self, text: str) -> None:
        self.pieces.append(text)
        self.ends.append(True)

    async def _send(self, event: Any) -> None:
        self.pieces.append(event.data)
        self.ends.append(event.message_finished)


@pytest.mark.parametrize("size", [0, 1, PIECE - 2, PIECE - 1, PIECE, 3 * PIECE, 3 * PIECE + 1])
async def test_a_message_is_sent_in_pieces_of_which_the_last_ends_it(size: int) -> None:
    socket = Recorded()

    await send(socket, "[", "x" * size, "]")

    assert "".join(socket.pieces) == "[" + "x" * size + "]"
    assert socket.ends == [False] * (len(socket.ends) - 1) + [True]
    assert max(map(len, socket.pieces)) <= PIECE


async def test_a_browser_puts_the_pieces_together(nursery: trio.Nursery) -> None:
    here = await console(nursery)
    names = [f"{n}" + "é" * 40_000 for n in range(3)]
    for name in names:
        await here.client.addjob(name, "body", replicate=1)
    async with here.browser() as browser:
        rows = (await browser.see("queues"))["rows"]
        while len(rows) < len(names):
            rows = (await browser.hear("put", 1))["data"]["rows"]

    assert {row["name"] for row in rows} == set(names)
