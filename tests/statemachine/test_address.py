import random

import pytest

from disque_trio.statemachine.address import is_node_id, is_port, literal_ip, new_node_id


def test_a_new_name_is_forty_hexadecimal_digits() -> None:
    name = new_node_id(random.Random(1))

    assert len(name) == 40
    assert set(name) <= set(b"0123456789abcdef")


def test_two_new_names_differ() -> None:
    rng = random.Random(1)

    assert new_node_id(rng) != new_node_id(rng)


@pytest.mark.parametrize("word", [b"a" * 40, b"0123456789" * 4, b"node-" * 8])
def test_any_word_of_forty_characters_is_a_name(word: bytes) -> None:
    assert is_node_id(word)


@pytest.mark.parametrize(
    "word", [b"", b"a" * 39, b"a" * 41, b"a" * 39 + b"\n", b"a b" + b"c" * 37, b"\xff" * 40]
)
def test_what_would_break_a_line_of_nodes_conf_is_no_name(word: bytes) -> None:
    assert not is_node_id(word)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
    ],
)
def test_an_address_has_one_spelling(text: str, literal: str) -> None:
    assert literal_ip(text) == literal


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "1.2.3.4.5", "fe80::1%eth0", "10.0.0.1 ", "10.0.0.\ufffd"]
)
def test_names_and_nonsense_are_no_addresses(text: str) -> None:
    assert literal_ip(text) == ""


def test_a_port_leaves_room_for_the_bus_port() -> None:
    assert is_port(1)
    assert is_port(55_535)
    assert not is_port(0)
    assert not is_port(-1)
    assert not is_port(55_536)
