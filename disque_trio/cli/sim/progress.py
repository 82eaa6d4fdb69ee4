"""How far a sweep has come: a bar on a terminal, a line now and then elsewhere."""

import time
from datetime import timedelta
from types import TracebackType

from rich import progress as bars
from rich.console import Console

from disque_trio.terminal.counting import counted

_PAUSE_S = 10.0


class Progress:
    """Counts seeds, and shows how many a second."""

    def __init__(self, console: Console, total: int, kept: int) -> None:
        self.console = console
        self._total = total
        self._kept = kept
        self._done = self._failed = 0
        self._began = self._printed_at = time.monotonic()
        self._bar = bars.Progress(
            bars.TextColumn("[bold]seeds"),
            bars.BarColumn(bar_width=None),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[pace]}"),
            bars.TextColumn("{task.fields[failed]}"),
            bars.TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=total, pace="", failed="")

    def __enter__(self) -> "Progress":
        self._bar.start()
        if self._kept:
            self.console.print(f"{counted(self._kept, 'seed')} done before, {self._total:,} to go")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def begin(self) -> None:
        """Seeds are run from now on: measure the pace from here."""
        self._began = self._printed_at = time.monotonic()
        self._bar.reset(self._task)

    def step(self, *, is_seed: bool, is_failure: bool) -> None:
        """One more run is done."""
        self._done += is_seed
        self._failed += is_failure
        now = time.monotonic()
        pace = f"{self._done / max(now - self._began, 0.001):,.1f}/s"
        failed = f"[bold red]{self._failed:,} failed[/]" if self._failed else "none failed"
        self._bar.update(self._task, completed=self._done, pace=pace, failed=failed)
        if not self.console.is_terminal and now - self._printed_at >= _PAUSE_S:
            self._printed_at = now
            left = (self._total - self._done) * (now - self._began) / max(self._done, 1)
            self.console.print(
                f"{self._done:,} of {counted(self._total, 'seed')}, {pace}, {failed}, "
                f"{timedelta(seconds=round(left))} left"
            )
