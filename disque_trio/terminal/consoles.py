"""Consoles of Rich, for colours and tables, that show what would command the terminal as escapes.

Texts by others must still be escaped against Rich's markup, or `markup` be False.
"""

from typing import IO, Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from disque_trio.terminal.escapes import printable_lines


def console(file: IO[str] | None = None, **options: Any) -> Console:
    """A console that writes to `file`, or to standard output. `options` are Rich's."""
    made = _Console(file=file, highlight=False, emoji=False, **options)
    made.push_render_hook(_Cleaner())
    return made


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """The command line decides on the exit status: Rich would end the program here."""
        raise BrokenPipeError


class _Cleaner(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Cleaned(each) for each in renderables]


class _Cleaned:
    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, made: Console, options: ConsoleOptions) -> RenderResult:
        for each in made.render(self._inner, options):
            text = each.text if each.control else printable_lines(each.text)
            yield Segment(text, each.style, each.control)
