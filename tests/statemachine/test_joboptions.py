"""The words of an ADDJOB, from the values of its options."""

import pytest

from disque_trio.statemachine import joboptions
from disque_trio.statemachine.base import ORIGINAL_PERIOD_S
from disque_trio.statemachine.joboptions import BY_WORD, CARRIED


def test_words_stand_in_the_order_of_the_table_and_what_is_not_given_is_left_out() -> None:
    values = {"ttl": 60, "replicate": 3, "limit": None, "unique": "key", "is_async": False}

    assert joboptions.words(values) == [b"REPLICATE", 3, b"TTL", "60", b"UNIQUE", "key"]


def test_a_flag_is_one_word() -> None:
    [flag] = [each for each in joboptions.OPTIONS if not each.usage]

    assert joboptions.words({flag.name: True}) == [flag.word]
    assert joboptions.words({flag.name: False}) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"delay": 1.5}, [b"DELAY", "1.500", b"PRIORITY", 0]),
        ({"retry": ORIGINAL_PERIOD_S + 1}, [b"RETRY", f"{ORIGINAL_PERIOD_S + 1}", b"PRIORITY", 0]),
        ({"delay": 1.5, "priority": 7}, [b"DELAY", "1.500", b"PRIORITY", 7]),
        (
            {"delay": 2, "retry": ORIGINAL_PERIOD_S},
            [b"DELAY", "2", b"RETRY", f"{ORIGINAL_PERIOD_S}"],
        ),
    ],
)
def test_decimals_and_long_times_come_with_an_option_that_originals_lack(
    values: dict[str, float], words: list[object]
) -> None:
    assert joboptions.words(values) == words


def test_an_option_is_named_in_plans_by_its_unit_and_in_show_as_its_extension() -> None:
    assert BY_WORD[b"BACKOFF"].planned == "backoff_s"
    assert BY_WORD[b"LIMIT"].planned == "limit"
    assert [each.shown for each in CARRIED if "_" in each.extension] == ["max-backoff"]
