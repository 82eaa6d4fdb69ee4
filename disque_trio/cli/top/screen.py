"""The screen of `top`, on Textual. Two tables, of which one is shown at a time."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.coordinate import Coordinate
from textual.widgets import DataTable, Footer, Input, Static

from disque_trio.cli.top import tables
from disque_trio.client.errors import DisqueError
from disque_trio.observe.sampling import Sampler, View
from disque_trio.terminal.escapes import printable
from disque_trio.terminal.output import cut, width_of

MOST_ROWS: Final = 500
"""Queues that are shown: the first ones in the order chosen."""
_LEAST_NAME: Final = 12
HEADS: Final = {"queues": tables.QUEUE_HEADS, "nodes": tables.NODE_HEADS}


class Top(App[str]):
    """It ends with the reason why the cluster cannot be watched, or none."""

    TITLE = "disque-trio top"
    CSS = "#filter { display: none; } #filter.shown { display: block; } .hidden { display: none; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "show('queues')", "Queues"),
        Binding("n", "show('nodes')", "Nodes"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("s", "sort", "Sort"),
        Binding("space", "freeze", "Freeze"),
        Binding("escape", "leave", "End"),
    ]

    def __init__(self, sampler: Sampler, interval: float, by: str) -> None:
        super().__init__()
        self._sampler = sampler
        self._interval = interval
        self._by = by
        self._view: View | None = None
        self._is_frozen = False

    def compose(self) -> ComposeResult:
        """A line, the tables, the filter, the keys."""
        yield Static("asking the nodes", id="summary", markup=False)
        with Vertical():
            yield DataTable[Text](id="queues", cursor_type="row")
            yield DataTable[Text](id="nodes", cursor_type="row", classes="hidden")
        yield Input(placeholder="part of a queue's name", id="filter")
        yield Footer()

    async def on_mount(self) -> None:
        """Begin to look."""
        for name, heads in HEADS.items():
            self._table(name).add_columns(*heads)
        self._table("queues").focus()
        self.run_worker(self._look(), exclusive=True)
        self.set_interval(self._interval, self._look_again)

    def _look_again(self) -> None:
        # A look that takes longer than the interval is not doubled.
        if not self._is_frozen and not any(each.is_running for each in self.workers):
            self.run_worker(self._look())

    async def _look(self) -> None:
        try:
            self._view = await self._sampler.look()
        except DisqueError as error:
            if self._view is None:
                self.exit(str(error))
            else:
                self.query_one("#summary", Static).update(printable(f"no answer: {error}"))
            return
        self._draw()

    async def on_unmount(self) -> None:
        """The screen ends."""
        await self._sampler.observer.client.close()

    def _table(self, name: str) -> "DataTable[Text]":
        return self.query_one(f"#{name}", DataTable)

    def _draw(self) -> None:
        view = self._view
        if view is None:
            return
        part = self.query_one("#filter", Input).value
        found = [each for each in tables.in_order(view, self._by) if part in each.totals.name]
        self._fill("queues", [tables.queue_row(each, view.names) for each in found[:MOST_ROWS]])
        self._fill("nodes", [tables.node_row(each) for each in view.nodes])
        more = f"; the first {MOST_ROWS} are shown" if len(found) > MOST_ROWS else ""
        state = "; frozen" if self._is_frozen else ""
        lines = [f"{tables.summary(view)}; by {self._by}{more}{state}", tables.wrong(view)]
        shown = "\n".join(printable(line) for line in lines if line)
        self.query_one("#summary", Static).update(shown)

    def _fill(self, name: str, rows: list[tables.Row]) -> None:
        """New rows; the cursor stays on the same line."""
        table = self._table(name)
        line = table.cursor_row
        table.clear()
        shown = [[printable(cell) for cell in row] for row in rows]
        # Figures stay on the screen: names give way.
        columns = list(zip(HEADS[name], *shown, strict=True))
        figures_take = sum(max(map(width_of, column)) for column in columns[1:])
        room = max(self.size.width - figures_take - 2 * len(columns), _LEAST_NAME)
        for first, *figures in shown:
            table.add_row(Text(cut(first, room)), *map(Text, figures))
        table.cursor_coordinate = Coordinate(min(line, max(len(rows) - 1, 0)), 0)

    # Keys.

    def action_show(self, name: str) -> None:
        """One of the tables."""
        for each in ("queues", "nodes"):
            self._table(each).set_class(each != name, "hidden")
        self._table(name).focus()

    def action_filter(self) -> None:
        """Ask for a part of a name."""
        field = self.query_one("#filter", Input)
        field.add_class("shown")
        field.focus()

    def on_input_changed(self) -> None:
        """Each letter counts."""
        self._draw()

    def on_input_submitted(self) -> None:
        """Back to the table; the filter stays."""
        self.query_one("#filter", Input).remove_class("shown")
        self.action_show("queues")

    def action_sort(self) -> None:
        """By the next column."""
        self._by = tables.SORTS[(tables.SORTS.index(self._by) + 1) % len(tables.SORTS)]
        self._draw()

    def action_freeze(self) -> None:
        """Stop and go on."""
        self._is_frozen = not self._is_frozen
        self._draw()

    def action_leave(self) -> None:
        """Leave the filter, or the screen."""
        field = self.query_one("#filter", Input)
        if field.has_focus:
            field.value = ""
            self.on_input_submitted()
        else:
            self.exit()
