import pytest

from disque_trio.cli.formats import for_people, for_pipes, for_programs, quoted
from disque_trio.statemachine.base import NULL_ARRAY, Failure, Map, Reply, Set, Status
from disque_trio.wire.words import split

NESTED_SHOWN = b"""\
1) 1) "q"
   2) "D-1"
   3) "x"
2) 1) "q"
   2) 1) (integer) 1
      2) (empty array)
   3) (nil)"""
NESTED: Reply = [[b"q", b"D-1", b"x"], [b"q", [1, []], None]]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Status(b"OK"), b"OK"),
        (Failure(b"ERR no"), b"(error) ERR no"),
        (1, b"(integer) 1"),
        (-1, b"(integer) -1"),
        (b"bulk", b'"bulk"'),
        (b"", b'""'),
        (None, b"(nil)"),
        (NULL_ARRAY, b"(nil)"),
        ([], b"(empty array)"),
        ([1, b"a", Status(b"OK")], b'1) (integer) 1\n2) "a"\n3) OK'),
        ([[b"q", b"id", b"body"]], b'1) 1) "q"\n   2) "id"\n   3) "body"'),
        (Map({b"proto": 3}), b'1) "proto"\n2) (integer) 3'),
        (Set([b"a", Set([])]), b'1) "a"\n2) (empty array)'),
        (NESTED, NESTED_SHOWN),
    ],
)
def test_people_see_the_type_of_a_reply(reply: Reply, text: bytes) -> None:
    assert for_people([b"X"], reply) == text


def test_numbers_of_a_long_array_are_aligned_with_what_is_nested_in_it() -> None:
    reply: list[Reply] = [*range(9), [1, 2]]

    lines = for_people([b"X"], reply).split(b"\n")

    assert lines[0] == b" 1) (integer) 0"
    assert lines[9:] == [b"10) 1) (integer) 1", b"    2) (integer) 2"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain ~", b'"plain ~"'),
        (b'"\\', rb'"\"\\"'),
        (b"\n\r\t\a\b", rb'"\n\r\t\a\b"'),
        (b"\0\x1b\x7f\x80\xff", rb'"\x00\x1b\x7f\x80\xff"'),
        ("ü".encode(), rb'"\xc3\xbc"'),
    ],
)
def test_quoted_bytes_are_printable_and_can_be_typed_again(data: bytes, text: bytes) -> None:
    assert quoted(data) == text
    assert split(text) == [data]


@pytest.mark.parametrize(
    "command", [[b"INFO"], [b"info", b"stats"], [b"CLUSTER", b"nodes"], [b"client", b"LIST"]]
)
def test_people_read_texts_as_they_are(command: list[bytes]) -> None:
    assert for_people(command, b"# Server\r\nhz:10\r\n") == b"# Server\nhz:10"


def test_a_text_of_a_node_commands_no_terminal() -> None:
    hostile = b"name=\x1b[2J\xc2\x9b"
    assert for_people([b"CLIENT", b"LIST"], hostile) == b"name=\\x1b[2J\\x9b"
    assert for_people([b"PAUSE"], Status(hostile)) == b"name=\\x1b[2J\\x9b"
    assert for_people([b"X"], Failure(hostile)) == b"(error) name=\\x1b[2J\\x9b"


def test_an_error_instead_of_a_text_is_still_an_error() -> None:
    assert for_people([b"INFO"], Failure(b"ERR no")) == b"(error) ERR no"


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Status(b"OK"), b"OK"),
        (Failure(b"ERR no"), b"ERR no"),
        (12, b"12"),
        (b"a\n\xff", b"a\n\xff"),
        (None, b""),
        (NULL_ARRAY, b""),
        ([], b""),
        (Map({b"proto": 3}), b"proto\n3"),
        (Set([b"a", 3]), b"a\n3"),
        (NESTED, b"q\nD-1\nx\nq\n1\n\n"),
    ],
)
def test_pipes_get_bare_bytes(reply: Reply, text: bytes) -> None:
    assert for_pipes([b"X"], reply) == text


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (Status(b"OK"), '"OK"'),
        (Failure(b"ERR no"), '{"error":"ERR no"}'),
        (12, "12"),
        (b'a"\n', r'"a\"\n"'),
        ("grün".encode(), '"grün"'),
        (b"\xff\x00a", r'"ÿ\u0000a"'),
        (None, "null"),
        (NULL_ARRAY, "null"),
        ([], "[]"),
        (Map({b"proto": 3, b"modules": []}), '{"proto":3,"modules":[]}'),
        (Set([b"a", 3]), '["a",3]'),
        ([1, [b"a", None]], '[1,["a",null]]'),
    ],
)
def test_programs_get_one_json_value(reply: Reply, text: str) -> None:
    assert for_programs([b"X"], reply).decode() == text


@pytest.mark.parametrize(
    "command", [[b"show", b"D-1"], [b"QSTAT", b"q"], [b"config", b"get", b"*"]]
)
def test_programs_get_names_and_values_as_an_object(command: list[bytes]) -> None:
    assert for_programs(command, [b"a", 1, b"b", [b"x"]]) == b'{"a":1,"b":["x"]}'


def test_a_null_instead_of_names_and_values_stays_null() -> None:
    assert for_programs([b"SHOW", b"D-1"], None) == b"null"
