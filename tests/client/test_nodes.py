"""Which node a client asks next."""

import pytest

from disque_trio.client.address import Address
from disque_trio.client.errors import LostError
from disque_trio.client.greeting import Introduction
from disque_trio.client.nodes import LONGEST_REST_S, REST_S, Nodes, NoNodeError
from disque_trio.client.refusals import (
    RefusedError,
    UnavailableError,
    UnknownJobError,
    UnsupportedError,
)
from disque_trio.statemachine.base import Reply

A, B, C = (Address(host=name) for name in "abc")
IDS = {"a": b"a" * 40, "b": b"b" * 40, "c": b"c" * 40}


def hello(myself: str, *names: str, features: str = "") -> Introduction:
    rows: list[Reply] = [[IDS[name], name.encode(), b"7711", b"1"] for name in names]
    return Introduction([1, IDS[myself], *rows], frozenset(features.split()))


def test_the_first_that_was_named_is_asked_first() -> None:
    assert Nodes([B, A]).order(0) == [B, A]


def test_a_node_that_failed_is_asked_last_for_a_while() -> None:
    nodes = Nodes([A, B])

    nodes.failed(A, "refused", 10)

    assert nodes.order(10 + REST_S - 0.1) == [B, A]
    assert nodes.is_resting(A, 10)
    assert nodes.order(10 + REST_S) == [A, B]


def test_its_rest_doubles_with_each_failure_and_ends_with_an_answer() -> None:
    nodes = Nodes([A, B])

    for _ in range(2):
        nodes.failed(A, "refused", 0)
    assert nodes.is_resting(A, 2 * REST_S - 0.1)
    assert not nodes.is_resting(A, 2 * REST_S)

    for _ in range(2000):
        nodes.failed(A, "refused", 0)
    assert not nodes.is_resting(A, LONGEST_REST_S)

    nodes.answered(A)
    assert nodes.order(0) == [A, B]


def test_if_all_rest_the_one_whose_rest_ends_first_is_asked_first() -> None:
    nodes = Nodes([A, B])

    nodes.failed(A, "refused", 1)
    nodes.failed(B, "refused", 0)

    assert nodes.order(1) == [B, A]


def test_nodes_that_a_node_names_are_asked_too() -> None:
    nodes = Nodes([A])

    nodes.introduced(A, hello("a", "a", "b"))

    assert nodes.order(0) == [A, B]


def test_a_client_that_does_not_discover_keeps_to_what_it_was_given() -> None:
    nodes = Nodes([A], discovers=False)

    nodes.introduced(A, hello("a", "a", "b"))

    assert nodes.order(0) == [A]


def test_a_node_with_two_addresses_is_one_node() -> None:
    outside = Address(host="outside")
    nodes = Nodes([outside, B])

    nodes.introduced(outside, hello("a", "a", "b"))
    nodes.introduced(B, hello("b", "a", "b"))

    assert nodes.order(0) == [outside, B]


def test_of_two_addresses_that_answer_the_first_is_kept() -> None:
    outside = Address(host="outside")
    nodes = Nodes([outside, A])

    for address in (outside, A):
        nodes.introduced(address, hello("a", "a", "b"))
        nodes.answered(address)

    assert nodes.order(0) == [outside, B]


def test_the_second_address_is_kept_if_the_first_has_failed() -> None:
    outside = Address(host="outside")
    nodes = Nodes([outside, A])

    nodes.introduced(outside, hello("a", "a"))
    nodes.failed(outside, "refused", 0)
    nodes.introduced(A, hello("a", "a"))

    assert nodes.order(0) == [A]
    assert nodes.reason(outside) == ""


def test_a_node_that_is_gone_and_that_nobody_names_is_forgotten_unless_it_was_given() -> None:
    nodes = Nodes([A])
    nodes.introduced(A, hello("a", "a", "b", "c"))
    nodes.failed(B, "refused", 0)

    nodes.introduced(A, hello("a", "a", "c"))

    assert nodes.order(100) == [A, C]


def test_a_node_that_has_moved_is_followed_once_it_does_not_answer_at_its_old_address() -> None:
    nodes = Nodes([A])
    nodes.introduced(A, hello("a", "a", "b"))
    moved = Introduction([1, IDS["a"], [IDS["a"], b"a", b"7711"], [IDS["b"], b"new", b"7711"]])
    nodes.introduced(A, moved)
    assert nodes.order(0) == [A, B], "its old address may be as good"

    nodes.failed(B, "refused", 0)
    nodes.introduced(A, moved)

    assert nodes.order(0) == [A, Address(host="new")]


def test_a_name_that_was_given_is_kept_beside_the_address_that_nodes_announce() -> None:
    nodes = Nodes([A, B])
    nodes.introduced(B, hello("b", "b"))
    moved = Introduction([1, IDS["a"], [IDS["a"], b"a", b"7711"], [IDS["b"], b"new", b"7711"]])
    nodes.failed(B, "refused", 0)

    nodes.introduced(A, moved)

    assert nodes.order(0) == [A, Address(host="new"), B]


def test_an_answer_that_is_no_hello_teaches_nothing() -> None:
    nodes = Nodes([A])

    nodes.introduced(A, Introduction([1]))
    nodes.introduced(A, Introduction([1, IDS["a"], 7, [b"id"]]))

    assert nodes.order(0) == [A]


def test_what_each_node_can_is_remembered_by_its_address() -> None:
    nodes = Nodes([A, B])

    nodes.introduced(A, hello("a", "a", "b", features="release tokens"))

    assert nodes.features(A) == {"release", "tokens"}
    assert nodes.features(B) == nodes.features(C) == frozenset()


def test_a_node_may_be_asked_before_the_one_that_answers_best() -> None:
    attempts = Nodes([A, B]).attempts(0, is_repeatable=True, first=B)

    assert next(iter(attempts)) == B


def test_a_job_that_one_node_does_not_know_is_sought_at_the_others() -> None:
    unknown = UnknownJobError("NOJOB", "", "WORKING")
    nodes = Nodes([A, B])

    assert ask_all(nodes, unknown, is_sought=True) == [A, B]
    assert nodes.order(0) == [A, B], "it is no failure"
    with pytest.raises(UnknownJobError):
        ask_all(Nodes([A]), unknown, is_sought=True)
    with pytest.raises(UnknownJobError):
        ask_all(nodes, unknown)


def test_a_node_that_lacks_a_feature_is_not_the_last_one_asked_and_rests_not() -> None:
    lacking = UnsupportedError("it keeps no results")
    nodes = Nodes([A, B])

    assert ask_all(nodes, lacking) == [A, B]
    assert not nodes.is_resting(A, 0)
    with pytest.raises(UnsupportedError):
        ask_all(Nodes([A]), lacking)


def ask_all(
    nodes: Nodes, error: Exception, *, is_repeatable: bool = True, is_sought: bool = False
) -> list[Address]:
    asked = []
    attempts = nodes.attempts(0, is_repeatable=is_repeatable, is_sought=is_sought)
    for address in attempts:
        asked.append(address)
        with attempts:
            if address == A:
                raise error
            return asked
    raise AssertionError


def test_the_next_node_is_asked_if_one_cannot() -> None:
    assert ask_all(Nodes([A, B]), LostError("cut")) == [A, B]
    assert ask_all(Nodes([A, B]), UnavailableError("OOM", "", "ADDJOB")) == [A, B]


def test_what_must_not_be_sent_twice_is_not() -> None:
    with pytest.raises(LostError):
        ask_all(Nodes([A, B]), LostError("cut"), is_repeatable=False)


def test_what_one_node_refuses_no_other_is_asked() -> None:
    with pytest.raises(RefusedError):
        ask_all(Nodes([A, B]), RefusedError("ERR", "syntax", "ADDJOB"))


def test_if_no_node_can_the_reasons_of_all_are_told() -> None:
    with pytest.raises(NoNodeError, match="no node could run the command: cut"):
        ask_all(Nodes([A]), LostError("cut"))


def test_the_node_that_delivered_a_job_is_asked_first() -> None:
    nodes = Nodes([A, B])
    nodes.introduced(A, hello("a", "a", "b"))

    attempts = nodes.attempts(0, is_repeatable=True, giver="bbbbbbbb")

    assert next(iter(attempts)) == B
    nodes.failed(B, "refused", 0)
    attempts = nodes.attempts(1, is_repeatable=True, giver="bbbbbbbb")
    assert next(iter(attempts)) == A
    assert next(iter(nodes.attempts(9, is_repeatable=True, giver="cccccccc"))) == A
