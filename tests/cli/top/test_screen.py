"""The screen of `top`, with keys, against looks that are given."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
from textual.widgets import DataTable

from disque_trio.cli.top import tables
from disque_trio.client.nodes import NoNodeError
from disque_trio.client.records import QueueLimits
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.cluster import NodeView
from disque_trio.observe.finding import note, problem, warning
from disque_trio.observe.observer import Observer
from disque_trio.observe.sampling import QueueView, Sampler, View
from disque_trio.worker.operating.queues import QueueTotals

pytest.importorskip("textual", reason="the extra 'top' is not installed")
from disque_trio.cli.top.screen import Top


def queue(name: str, length: int, age: float = 0.0) -> QueueView:
    totals = QueueTotals(
        name=name,
        length=length,
        delayed=0,
        leased=None,
        dead=0,
        restored=0,
        restored_due_s=None,
        delayed_due_s=None,
        next_age_s=age,
        blocked=0,
        jobs_in=0,
        jobs_out=0,
        paused={},
    )
    return QueueView(totals, 12.0, 0.5)


NODE = NodeView("n1:7711", "web1", 7, 1 << 20, 1 << 30, 2, 1, 0, {}, {"jobs_added": 3.0})
VIEW = View(2.0, [NODE], [queue("mail", 3, 5.0), queue("sms", 9)], {})


@attrs.define
class Scripted(Sampler):
    """Sees what it is given, the last again and again; an error is raised."""

    views: list[View | Exception] = attrs.Factory(list)

    async def look(self) -> View:
        await asyncio.sleep(0)
        view = self.views.pop(0) if len(self.views) > 1 else self.views[0]
        if isinstance(view, Exception):
            raise view
        return view


def played(*views: View | Exception, play: Callable[[Top, Any], Awaitable[None]]) -> Top:
    """The screen, after the keys have been pressed."""
    app = Top(Scripted(Observer(DeadlineClient()), views=list(views)), 3600, "jobs")

    async def run() -> None:
        async with app.run_test(size=(120, 30)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            await play(app, pilot)

    asyncio.run(run())
    return app


def on_screen(view: View, width: int) -> str:
    """The lines of the table of queues, as wide as the terminal."""
    lines: list[str] = []

    async def run() -> None:
        app = Top(Scripted(Observer(DeadlineClient()), views=[view]), 3600, "name")
        async with app.run_test(size=(width, 30)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            table = app.query_one("#queues", DataTable)
            lines.extend(table.render_line(each).text for each in range(table.size.height))

    asyncio.run(run())
    return "\n".join(lines)


def shown(app: Top, name: str) -> list[str]:
    """The first cell of each row."""
    table = app.query_one(f"#{name}")
    return [str(table.get_row_at(number)[0]) for number in range(table.row_count)]


def test_the_longest_queue_comes_first_and_s_sorts_by_the_next() -> None:
    async def play(app: Top, pilot: Any) -> None:
        assert shown(app, "queues") == ["sms", "mail"]
        await pilot.press("s")
        assert shown(app, "queues") == ["mail", "sms"]

    played(VIEW, play=play)


def test_n_shows_the_nodes_and_q_the_queues() -> None:
    async def play(app: Top, pilot: Any) -> None:
        await pilot.press("n")
        assert shown(app, "nodes") == ["web1"]
        assert app.query_one("#nodes").display
        assert not app.query_one("#queues").display
        await pilot.press("q")
        assert app.query_one("#queues").display

    played(VIEW, play=play)


def test_the_filter_is_typed_behind_a_slash() -> None:
    async def play(app: Top, pilot: Any) -> None:
        await pilot.press("slash", "m", "a")
        assert shown(app, "queues") == ["mail"]
        await pilot.press("escape")
        assert shown(app, "queues") == ["sms", "mail"]

    played(VIEW, play=play)


def test_a_name_cannot_command_the_terminal() -> None:
    async def play(app: Top, pilot: Any) -> None:
        assert shown(app, "queues") == ["[red]\\x1b[31mx"]

    played(View(1.0, [], [queue("[red]\x1b[31mx", 1)], {}), play=play)


def test_a_long_name_leaves_the_figures_on_the_screen() -> None:
    async def play(app: Top, pilot: Any) -> None:
        table = app.query_one("#queues", DataTable)
        assert table.virtual_size.width <= 120
        assert all(name.endswith("…") for name in shown(app, "queues"))

    played(View(1.0, [], [queue("x" * 3000, 1234), queue("日" * 200, 5)], {}), play=play)


def test_a_node_that_is_silent_is_named() -> None:
    async def play(app: Top, pilot: Any) -> None:
        assert "n2:7711: it does not answer" in str(app.query_one("#summary").content)

    played(attrs.evolve(VIEW, unreached={"n2:7711": "it does not answer"}), play=play)


def test_the_worst_finding_is_on_the_screen_with_how_many_others_there_are() -> None:
    found = [problem("n2", "hold it", "start it"), warning("q", "stuck", ""), note("n1", "alone")]

    async def play(app: Top, pilot: Any) -> None:
        lines = str(app.query_one("#summary").content).splitlines()
        assert lines[1:] == ["problem: n2: hold it (and 1 more: disque-trio doctor)"]

    played(attrs.evolve(VIEW, findings=found), play=play)
    assert tables.wrong(attrs.evolve(VIEW, findings=found[2:])) == ""


def test_a_cluster_that_never_answers_ends_the_screen_with_the_reason() -> None:
    async def play(app: Top, pilot: Any) -> None:
        pass

    assert played(NoNodeError("nobody"), play=play).return_value == "nobody"


def test_jobs_that_a_restart_has_brought_back_are_counted() -> None:
    restarted = queue("mail", 0)
    totals = attrs.evolve(restarted.totals, restored=20)

    row = tables.queue_row(attrs.evolve(restarted, totals=totals), {})

    assert row[tables.QUEUE_HEADS.index("RESTORED")] == "20"
    assert len(row) == len(tables.QUEUE_HEADS)


def test_a_queue_that_waits_for_its_limits_is_marked_within_80_columns() -> None:
    plain, waiting = queue("x" * 60, 12_345, 90.0), queue("y" * 60, 12_345, 90.0)
    totals = attrs.evolve(waiting.totals, limits=QueueLimits(20, 0, 1.0, 0), is_limited=True)
    view = attrs.evolve(VIEW, queues=[plain, attrs.evolve(waiting, totals=totals)])

    for lines in (tables.as_text(view, "name", 80), on_screen(view, 80)):
        first, second = [line[:80] for line in lines.splitlines() if line.strip()[:1] in {"x", "y"}]
        assert "0.5 limited" in second
        assert "limited" not in first


def test_the_order_of_queues_can_be_chosen() -> None:
    assert set(tables.SORTS) == {"jobs", "age", "in", "out", "name"}
    assert [each.totals.name for each in tables.in_order(VIEW, "name")] == ["mail", "sms"]
