import pytest

from disque_trio.statemachine.base import FOREVER, CommandError
from disque_trio.statemachine.commands import parse
from tests.rig import JOB, ONCE

NOT_AN_INTEGER = b"ERR value is not an integer or out of range"


@pytest.mark.parametrize(
    ("word", "value"),
    [
        (b"0", 0),
        (b"12", 12),
        (b"-12", -12),
        (b"+12", 12),
        (b"007", 7),
        (b"", 0),
        (b"9223372036854775807", (1 << 63) - 1),
        (b"-9223372036854775808", -(1 << 63)),
    ],
)
def test_an_integer_is_a_sign_and_digits_and_nothing_is_zero(word: bytes, value: int) -> None:
    assert parse.integer(word) == value


@pytest.mark.parametrize(
    "word",
    [
        b"x",
        b"1x",
        b" 1",
        b"1 ",
        b"1\n",
        b"1.0",
        b"1_000",
        b"+",
        b"-",
        b"--1",
        b"\xd9\xa1",
        b"9223372036854775808",
        b"-9223372036854775809",
        b"9" * 5000,
    ],
)
def test_anything_else_is_not(word: bytes) -> None:
    with pytest.raises(CommandError) as error:
        parse.integer(word)

    assert error.value.text.startswith(NOT_AN_INTEGER + b": '")


def test_the_error_says_which_word_is_wrong_how_and_for_what() -> None:
    for word, text in (
        (b"1.5", b": '1.5' is no whole number for TTL"),
        (b"nan", b": 'nan' is no whole number for TTL"),
        (b"9223372036854775808", b": '9223372036854775808' is beyond 9223372036854775807 for TTL"),
        (b"-9" + b"0" * 19, b": '-90000000000000000000' is beyond -9223372036854775808 for TTL"),
    ):
        with pytest.raises(CommandError) as error:
            parse.integer(word, name=b"TTL")
        assert error.value.text == NOT_AN_INTEGER + text


def test_an_integer_may_have_a_least_and_a_largest_value() -> None:
    assert parse.at_least(b"3", 3, b"ERR too small") == 3
    assert parse.integer(b"18446744073709551615", largest=(1 << 64) - 1) == (1 << 64) - 1
    for word, why in ((b"2", b": '2' is less than 3"), (b"x", b": 'x' is no whole number")):
        with pytest.raises(CommandError) as error:
            parse.at_least(word, 3, b"ERR too small")
        assert error.value.text == b"ERR too small" + why


def test_a_timeout_is_milliseconds() -> None:
    assert [parse.timeout(word, b"TIMEOUT") for word in (b"0", b"", b"1", b"+500")] == [
        0,
        0,
        1,
        500,
    ]


def test_a_wait_beyond_all_time_still_has_a_deadline() -> None:
    assert 1 << 59 < parse.timeout(b"9223372036854775807", b"TIMEOUT") < FOREVER


@pytest.mark.parametrize(
    ("word", "text"),
    [
        (
            b"x",
            b"ERR timeout is not an integer or out of range: 'x' is no whole number for TIMEOUT",
        ),
        (
            b"9223372036854775808",
            (
                b"ERR timeout is not an integer or out of range:"
                b" '9223372036854775808' is beyond 9223372036854775807 for TIMEOUT"
            ),
        ),
        (b"-1", b"ERR timeout is negative: '-1' for TIMEOUT"),
    ],
)
def test_other_timeouts_are_errors(word: bytes, text: bytes) -> None:
    with pytest.raises(CommandError) as error:
        parse.timeout(word, b"TIMEOUT")

    assert error.value.text == text


def test_one_malformed_id_spoils_them_all() -> None:
    assert parse.job_ids([b"ackjob"]) == []
    assert parse.job_ids([b"ackjob", JOB, ONCE, JOB]) == [JOB, ONCE, JOB]
    with pytest.raises(CommandError) as error:
        parse.job_ids([b"ackjob", JOB, b"D-", ONCE])
    assert error.value.text == (
        b"BADID Invalid Job ID format. 'D-' is not the id that ADDJOB answered: 40"
        b" characters, of which the first are D-"
    )


def test_an_option_has_the_words_after_it() -> None:
    words = parse.Words([b"COUNT", b"5", b"FROM", b"q"])

    assert next(iter(words)) == b"COUNT"
    assert words.value(b"COUNT") == b"5"
    assert list(words) == [b"FROM", b"q"]
    with pytest.raises(CommandError) as error:
        words.value(b"COUNT")
    assert error.value.text == b"ERR syntax error: COUNT has no value behind it"


def test_words_that_mean_something_are_parsed_once_and_mistakes_each_time() -> None:
    asked: list[tuple[bytes, ...]] = []

    def number(words: tuple[bytes, ...]) -> int:
        asked.append(words)
        return parse.integer(words[0])

    known = parse.Remembered(number)

    assert (known[(b"5",)], known[(b"5",)]) == (5, 5)
    for _ in range(2):
        with pytest.raises(CommandError):
            known[(b"five",)]
    assert asked == [(b"5",), (b"five",), (b"five",)]


def test_little_is_remembered_of_words_without_end() -> None:
    known = parse.Remembered(len)

    assert all(known[(b"%d" % number,)] == 1 for number in range(10_000))
    assert len(known) <= 1024
    known.clear()
    assert known[(b"long" * 100,)] == 1
    assert not known
