"""What commands a terminal, or ends a line, is shown as an escape."""

from disque_trio.terminal.escapes import printable, printable_lines
from tests.terminal.test_output import ESCAPED, HOSTILE


def test_what_commands_a_terminal_is_shown_as_an_escape() -> None:
    assert printable(HOSTILE) == ESCAPED
    assert printable("Grüße, 日本 ✓") == "Grüße, 日本 ✓"
    assert printable_lines("a\nb\x1b") == "a\nb\\x1b"


def test_what_is_not_seen_is_shown_as_an_escape() -> None:
    for unseen in "\u00ad\u034f\u061c\u115f\u180e\u200b\u2800\u2060\u206a\u3164\ufe00\ufeff\uffa0":
        escape = unseen.encode("unicode_escape").decode()
        assert printable(f"a{unseen}b") == f"a{escape}b"
    assert printable("\U000e0041\U000e0100") == r"\U000e0041\U000e0100"
    assert printable(b"a\xff".decode(errors="surrogateescape")) == r"a\xff"
    assert printable("\ud800") == r"\ud800"
    assert printable("❤\ufe0f") == "❤\ufe0f"


def test_a_stack_of_marks_does_not_cover_the_lines_around_it() -> None:
    assert printable("a" + "\u0301" * 300) == "a" + "\u0301" * 4 + r"\u0301" * 296
    assert printable("Việt, שָׁלוֹם, ปู่, नमस्ते") == "Việt, שָׁלוֹם, ปู่, नमस्ते"
