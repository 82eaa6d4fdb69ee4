"""Sandboxes that have come some way."""

from typing import Any

from disque_trio.sim.sandbox.sandbox import Sandbox

SECOND = 1_000_000


def again(box: Sandbox) -> list[dict[str, Any]]:
    """Its operations, as `repeat` takes them."""
    return [{"at": each.at, "name": each.name, **each.args} for each in box.done]


def story(box: Sandbox, pieces: int = 1) -> Sandbox:
    """Some of everything, with the time between operations cut into so many pieces."""

    def run(until: int) -> None:
        began = box.now
        for piece in range(1, pieces + 1):
            box.run_to(began + (until - began) * piece // pieces)

    run(SECOND)
    box.do("add", node="n1", count=4, replicate=2, retry=2)
    run(1_400_000)
    box.do("take", node="n3")
    box.do("add-worker", node="n2", acks=False)
    run(2 * SECOND)
    box.do("cut", sides=[["n1"], ["n2", "n3"]])
    box.do("slow", node="n2", ms=20)
    box.do("clock", node="n2", ms=-5000)
    run(6 * SECOND)
    box.do("kill", node="n3")
    run(9 * SECOND)
    box.do("heal")
    box.do("add-worker", node="n1")
    run(20 * SECOND)
    return box
