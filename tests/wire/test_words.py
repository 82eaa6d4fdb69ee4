import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.wire.words import UnbalancedQuotesError, split
from tests.strategies import payloads


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", []),
        (b" \t\v\f\r ", []),
        (b"PING", [b"PING"]),
        (b"  addjob  q\tbody 0 ", [b"addjob", b"q", b"body", b"0"]),
        (b'addjob q "a b" 0', [b"addjob", b"q", b"a b", b"0"]),
        (b'"" x', [b"", b"x"]),
        (b"'' x", [b"", b"x"]),
        (b"ab\"c d\" 'e f'", [b"abc d", b"e f"]),
        (rb'"\n\r\t\b\a\\\"\x41\xfF"', [b'\n\r\t\b\a\\"A\xff']),
        (rb'"\q\x4g\x"', [b"qx4gx"]),
        (rb"'it\'s' '\n' '\\ '", [b"it's", b"\\n", b"\\\\ "]),
        (b"\"it's\" '\"'", [b"it's", b'"']),
        (b'"two\nlines"', [b"two\nlines"]),
        (b"a\x00b \xff", [b"a\x00b", b"\xff"]),
    ],
)
def test_a_line_has_these_words(line: bytes, words: list[bytes]) -> None:
    assert split(line) == words


@pytest.mark.parametrize(
    "line",
    [
        b'"',
        b"'",
        b'a"b',
        b'"a"b',
        b"'a'b",
        b"\"a\"'b'",
        rb'"a\"',
        rb"'a\'",
        rb"'a\\'",
        b"a 'b",
        b'"\\',
    ],
)
def test_quotes_must_close_and_end_their_word(line: bytes) -> None:
    with pytest.raises(UnbalancedQuotesError):
        split(line)


@given(payloads())
def test_any_line_has_words_or_unbalanced_quotes(line: bytes) -> None:
    try:
        words = split(line)
    except UnbalancedQuotesError:
        assert b'"' in line or b"'" in line
    else:
        assert sum(map(len, words)) <= len(line)


@given(st.lists(st.binary(max_size=10)))
def test_words_written_as_escapes_are_read_back(words: list[bytes]) -> None:
    line = b" ".join(b'"%b"' % b"".join(b"\\x%02x" % byte for byte in word) for word in words)

    assert split(line) == words
