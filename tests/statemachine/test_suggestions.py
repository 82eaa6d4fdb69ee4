"""What errors say to people: the value at fault, the name that was probably meant."""

import pytest

from disque_trio.statemachine.suggestions import did_you_mean, nearest, no_option, none_of, shown

OPTIONS = (b"REPLICATE", b"DELAY", b"RETRY", b"TTL", b"MAXLEN", b"ASYNC")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (b"RETYR", b"RETRY"),
        (b"replicats", b"REPLICATE"),
        (b"MAX", b"MAXLEN"),
        (b"TTLS", b"TTL"),
        (b"T", None),
        (b"", None),
        (b"colour", None),
        (b"\xff\xfe", None),
        (b"RETRY" * 100, None),
    ],
)
def test_the_nearest_name_is_found_whatever_its_case(typed: bytes, meant: bytes | None) -> None:
    assert nearest(typed, OPTIONS) == meant


def test_where_there_is_none_nothing_is_said() -> None:
    assert did_you_mean(b"RETYR", OPTIONS) == b" (did you mean 'RETRY'?)"
    assert did_you_mean(b"colour", OPTIONS) == b""


def test_a_value_is_shown_on_one_line_and_not_without_end() -> None:
    assert shown(b"a\r\nb") == b"'a  b'"
    assert shown(b"x" * 64) == b"'%b'" % (b"x" * 64)
    assert shown(b"x" * 65) == b"'%b...'" % (b"x" * 64)


def test_what_cannot_be_shown_is_written_out_and_text_stays_text() -> None:
    assert shown(b"\x1b[31m\x7f\0") == b"'\\x1b[31m\\x7f\\x00'"
    assert shown("größe".encode()) == "'größe'".encode()
    assert shown(b"\xff\xfe") == b"'\\xff\\xfe'"
    assert shown("é".encode() * 40).decode() == "'" + "é" * 32 + "...'"


def test_all_names_are_told_where_none_is_near() -> None:
    assert none_of(b"yess", (b"yes", b"no")) == b"'yess' is none of yes, no (did you mean 'yes'?)"
    assert no_option(b"RETYR", b"ADDJOB", OPTIONS) == (
        b"'RETYR' is not an option of ADDJOB (did you mean 'RETRY'?)"
    )
    assert no_option(b"x", b"ADDJOB", OPTIONS[:2]) == (
        b"'x' is not an option of ADDJOB; there are REPLICATE, DELAY"
    )
    assert no_option(b"x", b"WAITJOB", (b"TIMEOUT",)) == (
        b"'x' is not an option of WAITJOB; there is only TIMEOUT"
    )
