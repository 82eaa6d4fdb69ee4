"""What several nodes know of the jobs with a key, put together."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.key_facts import (
    DEAD,
    DONE_KEPT,
    ENDED,
    HELD,
    KEPT,
    KEY_STATES,
    KEY_WORDS,
    MOVED,
    PENDING,
    WAITING,
    KeyFact,
    holder_of_key,
    is_undecided,
    join,
    joined,
)

ONE: JobId = b"D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
TWO: JobId = b"D-cccccccc-BBBBBBBBBBBBBBBBBBBBBBBB-05a1"

facts = st.builds(
    KeyFact,
    st.sampled_from([ONE, TWO]),
    st.integers(0, 3),
    st.sampled_from(KEY_WORDS),
    st.integers(0, len(KEY_STATES) - 1),
    st.integers(0, 2),
)
of_one_job = st.builds(
    KeyFact,
    st.just(ONE),
    st.integers(0, 3),
    st.sampled_from(KEY_WORDS),
    st.integers(0, len(KEY_STATES) - 1),
    st.integers(0, 2),
)


def fact(
    word: int, id: JobId = ONE, stamp: int = 1, keep: int = 0, state: int = WAITING
) -> KeyFact:
    return KeyFact(id, stamp, word, state, keep)


@given(of_one_job, of_one_job, of_one_job)
def test_facts_are_joined_in_any_order_and_any_number_of_times(
    one: KeyFact, two: KeyFact, three: KeyFact
) -> None:
    assert joined(one, two) == joined(two, one)
    assert joined(joined(one, two), three) == joined(one, joined(two, three))
    assert joined(one, one) == one


@given(st.lists(st.lists(facts, max_size=3), max_size=3))
def test_answers_are_joined_in_any_order(answers: list[list[KeyFact]]) -> None:
    known = join(answers)

    for order in itertools.permutations(answers):
        assert join(order) == known
    assert join([*answers, *answers]) == known
    assert join([*answers, known.values()]) == known


def test_an_end_outweighs_a_copy_and_the_word_of_its_addjob_outweighs_one_too() -> None:
    assert holder_of_key(join([[fact(HELD)], [fact(ENDED)]])) is None
    waits = join([[fact(PENDING)], [fact(HELD)]])
    assert holder_of_key(waits) is None
    assert is_undecided(waits)


def test_a_copy_outweighs_that_it_has_gone() -> None:
    known = join([[fact(MOVED)], [fact(HELD)]])

    assert not is_undecided(known)
    assert holder_of_key(known) == fact(HELD)


def test_of_several_live_jobs_the_first_one_has_the_key() -> None:
    known = join([[fact(HELD, ONE, 2)], [fact(HELD, TWO, 1)]])

    assert holder_of_key(known) == fact(HELD, TWO, 1)


def test_a_live_job_has_the_key_rather_than_one_that_keeps_it() -> None:
    known = join([[fact(KEPT, ONE, 1)], [fact(HELD, TWO, 2)]])

    assert holder_of_key(known) == fact(HELD, TWO, 2)


def test_of_a_job_that_one_node_knows_as_acked_and_another_with_its_keep_the_key_is_kept() -> None:
    known = join([[fact(ENDED, state=DONE_KEPT)], [fact(HELD, keep=5, state=DEAD)]])

    found = holder_of_key(known)

    assert found is not None
    assert found.id == ONE
    assert KEY_STATES[DONE_KEPT] == b"done-kept"


def test_a_job_of_which_it_is_only_known_that_it_is_gone_keeps_no_key() -> None:
    """Its ADDJOB may have failed."""
    assert holder_of_key(join([[fact(ENDED)], [fact(HELD, keep=5, state=DEAD)]])) is None


def test_nobody_has_a_key_of_which_nobody_knows() -> None:
    assert holder_of_key({}) is None
    assert not is_undecided({})
