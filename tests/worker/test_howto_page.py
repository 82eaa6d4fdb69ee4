"""docs/worker-howto.md: its tasks are accepted, and what its producers add runs."""

import re
import sqlite3
from typing import Any, Final

from disque_trio.testing.inline.kit import Inline
from disque_trio.worker import App
from disque_trio.worker.once import CREATE_TABLE
from tests.trees import HOME

PAGE: Final = (HOME / "docs" / "worker-howto.md").read_text("utf-8")
CODE: Final = "".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


def told() -> dict[str, Any]:
    """The names of the page."""
    names: dict[str, Any] = {"__name__": "howto"}
    exec(compile(CODE, "docs/worker-howto.md", "exec"), names)
    return names


async def test_what_the_page_adds_is_run(disque_inline: Inline) -> None:
    page = told()
    await page["ask_twice"]()
    await page["in_ten_minutes"]()

    ran = await disque_inline.run_all(page["app"])

    assert [(each.task, each.end) for each in ran] == [
        ("report.make", "done"),
        ("mail.send", "done"),
    ]


async def test_the_tasks_end_as_the_page_says(disque_inline: Inline) -> None:
    page = told()
    app = page["app"]
    async with app:
        await page["cut"].enqueue("a.mp4")
        await page["index"].enqueue("a.mp4")
        await page["send"].enqueue("nobody")
        await page["charge"].enqueue(-1)
        await page["digest"].enqueue("busy@example.org")

    ran = await disque_inline.run_all(app, may_die=True)

    ends: dict[str, list[str]] = {}
    for each in ran:
        ends.setdefault(each.task, []).append(each.end)
    assert ends == {
        "video.cut": ["done"],
        "video.index": ["done"],
        "mail.send": ["dead"],
        "card.charge": ["dead"],
        "mail.digest": ["retried"] * 3 + ["dead"],
    }


async def test_a_payment_is_made_once(disque_inline: Inline) -> None:
    page = told()
    database = sqlite3.connect(":memory:")
    database.execute(CREATE_TABLE)
    database.execute("CREATE TABLE charges (number INTEGER)")
    app = App[None]()

    @app.task(name="pay")
    async def pay() -> None:
        page["pay"](database, 1)
        page["pay"](database, 1)

    await disque_inline.perform(pay)

    assert database.execute("SELECT count(*) FROM charges").fetchone() == (1,)
    database.close()
