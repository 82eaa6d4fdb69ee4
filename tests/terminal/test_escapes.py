"""What commands a terminal, or ends a line, is shown as an escape."""

from disque_trio.terminal.escapes import printable, printable_lines
from tests.terminal.test_output import ESCAPED, HOSTILE


def test_what_commands_a_terminal_is_shown_as_an_escape() -> None:
    assert printable(HOSTILE) == ESCAPED
    assert printable("Grüße, 日本 ✓") == "Grüße, 日本 ✓"
    assert printable_lines("a\nb\x1b") == "a\nb\\x1b"
