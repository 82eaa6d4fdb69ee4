"""COMMAND, for clients that read what the node can do."""

import pytest

from disque_trio.statemachine.base import Failure, Map, Reply, Set, Status
from disque_trio.statemachine.commands.table import ROWS
from tests.rig import Rig

READONLY, WRITE, DENYOOM, LOADING, FAST = [
    Status(flag) for flag in (b"readonly", b"write", b"denyoom", b"loading", b"fast")
]


def test_command_tells_of_every_command() -> None:
    rig = Rig()

    rows = rig.ask("COMMAND")

    assert isinstance(rows, list)
    assert len(rows) == rig.ask("COMMAND", "count") == len(ROWS)
    assert [b"command", 0, [READONLY, LOADING], 0, 0, 0] in rows


def test_command_info_tells_of_those_named() -> None:
    assert Rig().ask("COMMAND", "info", "AddJob", "nosuchthing", b"\xff", "qlen") == [
        [b"addjob", -4, [WRITE, DENYOOM, FAST], 0, 0, 0],
        None,
        None,
        [b"qlen", 2, [READONLY, FAST], 0, 0, 0],
    ]


def test_command_info_without_names_is_empty() -> None:
    assert Rig().ask("COMMAND", "INFO") == []


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("COUNT x", "it is COMMAND COUNT"),
        ("GETKEYS", "it is COMMAND GETKEYS word [word ...]"),
        ("cuont", "there is no COMMAND 'cuont' (did you mean 'COUNT'?)"),
        ("HELP", "there is no COMMAND 'HELP'; there are COUNT, INFO, LIST, DOCS, GETKEYS"),
    ],
)
def test_other_subcommands_are_refused(words: str, what: str) -> None:
    text = f"ERR Unknown subcommand or wrong number of arguments. ({what})"

    assert Rig().ask("COMMAND", *words.split()) == Failure(text.encode())


def test_an_empty_subcommand_is_refused() -> None:
    assert Rig().ask("COMMAND", "") == Failure(
        b"ERR Unknown subcommand or wrong number of arguments. (there is no COMMAND ''; there are"
        b" COUNT, INFO, LIST, DOCS, GETKEYS)"
    )


def of_version_3() -> Rig:
    rig = Rig()
    rig.ask("HELLO", 3)
    return rig


def test_version_3_has_the_ten_elements_of_redis_with_sets() -> None:
    none = Set([])

    assert of_version_3().ask("COMMAND", "INFO", "qlen", "nosuch") == [
        [b"qlen", 2, Set([READONLY, FAST]), 0, 0, 0, none, none, none, []],
        None,
    ]


# LIST.


def test_list_has_the_names() -> None:
    assert Rig().ask("COMMAND", "LIST") == [row.name.encode() for row in ROWS]


def test_list_may_be_filtered() -> None:
    rig = Rig()

    assert rig.ask("COMMAND", "LIST", "FILTERBY", "pattern", "?scan") == [b"qscan", b"jscan"]
    assert rig.ask("COMMAND", "LIST", "FILTERBY", "MODULE", "json") == []
    assert rig.ask("COMMAND", "LIST", "FILTERBY", "ACLCAT", "admin") == []
    assert rig.ask("COMMAND", "LIST", "FILTERBY", "COLOR", "red") == Failure(
        b"ERR syntax error: COMMAND LIST [FILTERBY PATTERN pattern]"
    )


# GETKEYS.


def test_no_command_has_keys() -> None:
    rig = Rig()

    assert rig.ask("COMMAND", "GETKEYS", "QLEN", "q") == Failure(
        b"ERR The command has no key arguments"
    )
    assert rig.ask("COMMAND", "GETKEYS", "QLEN") == Failure(
        b"ERR Invalid number of arguments specified for command"
    )
    assert rig.ask("COMMAND", "GETKEYS", "SET", "k") == Failure(b"ERR Invalid command specified")


# DOCS.


def test_docs_tell_of_the_arguments_of_each_command() -> None:
    docs = of_version_3().ask("COMMAND", "DOCS", "AddJob", "nosuch")

    assert isinstance(docs, Map)
    [(name, page)] = docs.items.items()
    assert name == b"addjob"
    assert isinstance(page, Map)
    assert page.items[b"summary"] == b"Add a job; returns its id when enough nodes hold a replica."
    arguments = page.items[b"arguments"]
    assert isinstance(arguments, list)
    optional = Set([Status(b"optional")])
    assert arguments[0] == Map({b"name": b"queue", b"type": b"string", b"display_text": b"queue"})
    assert arguments[3] == Map({
        b"name": b"n", b"type": b"string", b"display_text": b"n", b"token": b"REPLICATE",
        b"flags": optional,
    })  # fmt: skip
    assert arguments[-1] == Map(
        {b"name": b"async", b"type": b"pure-token", b"token": b"ASYNC", b"flags": optional}
    )


def test_docs_are_names_and_values_in_turn_for_version_2() -> None:
    assert Rig().ask("COMMAND", "DOCS", "qlen", "time") == [
        b"qlen",
        [
            b"summary", b"Return the length of a queue on this node.", b"group", b"disque",
            b"arguments",
            [[b"name", b"queue", b"type", b"string", b"display_text", b"queue"]],
        ],
        b"time",
        [
            b"summary", b"Return the node's clock: Unix seconds and microseconds.",
            b"group", b"disque",
        ],
    ]  # fmt: skip


def test_docs_of_a_command_with_several_forms_tell_of_each_as_a_subcommand() -> None:
    docs = Rig().ask("COMMAND", "DOCS", "slowlog")

    page: list[Reply] = [b"summary", b"Show commands that took long.", b"group", b"disque"]
    count: list[Reply] = [
        b"name", b"n", b"type", b"string", b"display_text", b"n", b"flags", [Status(b"optional")],
    ]  # fmt: skip
    get: list[Reply] = [*page, b"arguments", [count]]
    forms: list[Reply] = [b"slowlog|get", get, b"slowlog|len", page, b"slowlog|reset", page]
    assert docs == [b"slowlog", [*page, b"subcommands", forms]]


def test_docs_of_all_commands_tell_every_word_of_their_usage() -> None:
    for protocol in (2, 3):
        rig = Rig()
        rig.ask("HELLO", protocol)
        told = repr(rig.ask("COMMAND", "DOCS"))
        for row in ROWS:
            for word in row.usage.replace("[", " ").replace("]", " ").replace("|", " ").split():
                assert word == "..." or word in told or word.lower() in told, (row.name, word)
