"""What errors say to people: the value at fault, the name that was probably meant."""

import pytest

from disque_trio.statemachine.hints import did_you_mean, nearest, one_of, shown

OPTIONS = (b"REPLICATE", b"DELAY", b"RETRY", b"TTL", b"MAXLEN", b"ASYNC")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (b"RETYR", b"RETRY"),
        (b"replicas", b"REPLICATE"),
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


def test_a_choice_is_written_out() -> None:
    assert one_of((b"A", b"B", b"C")) == b"A, B or C"
    assert one_of((b"A",)) == b"A"
