"""The words of commands about jobs and queues, from the values of their options."""

from disque_trio.statemachine.commandoptions import GETJOB, NACK, words
from disque_trio.statemachine.joboptions import BY_WORD


def test_words_stand_in_the_order_of_the_table_and_what_is_not_given_is_left_out() -> None:
    values = {"count": 7, "no_hang": True, "wait": None, "with_meta": False}

    assert words(GETJOB, values) == [b"NOHANG", b"COUNT", 7]
    assert words(NACK, {"delay": 1.5, "error": b"no"}) == [b"DELAY", "1.500", b"ERROR", b"no"]


def test_texts_are_told_from_numbers_and_flags() -> None:
    texts = [word for word, option in {**BY_WORD, **NACK}.items() if option.is_text]

    assert texts == [b"GROUP", b"UNIQUE", b"ERROR"]
