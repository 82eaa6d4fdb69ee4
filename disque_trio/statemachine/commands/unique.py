"""ADDJOB UNIQUE: its options, and the key of the new job (docs/bus.md, "Keys of unique jobs")."""

import hashlib
from typing import Final, Protocol

import attrs

from disque_trio.statemachine import claims
from disque_trio.statemachine.base import (
    LONGEST_PERIOD_S,
    SYNTAX_ERROR,
    CommandError,
    Millis,
    Reply,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands.parse import once, seconds
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.keyfacts import MAX_KEY
from disque_trio.statemachine.keys import AGAIN, REJECT, REPLACE, RETURN
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import none_of, shown

OPTIONS: Final = (b"UNIQUE", b"KEEP", b"IFEXISTS")
WAYS: Final = {b"return": RETURN, b"reject": REJECT, b"again": AGAIN, b"replace": REPLACE}


class Given(Protocol):
    """The options of ADDJOB that concern keys; None where one is missing."""

    unique: bytes | None
    keep: Millis | None
    if_exists: int | None
    is_async: bool


def take(options: Given, name: bytes, word: bytes) -> None:
    """Take in one of the options. Raises CommandError for a bad value, and for a second one."""
    if name == b"UNIQUE":
        once(options.unique, name)
        options.unique = check_key(word)
    elif name == b"KEEP":
        once(options.keep, name)
        options.keep = seconds(word, name, most_s=LONGEST_PERIOD_S)
    else:
        once(options.if_exists, name)
        way = WAYS.get(word.lower())
        if way is None:
            raise CommandError(SYNTAX_ERROR + b": IFEXISTS: " + none_of(word, WAYS))
        options.if_exists = way


def check_key(word: bytes) -> bytes:
    """The key itself. Raises CommandError if it is too long."""
    if len(word) > MAX_KEY:
        raise CommandError(
            b"ERR A key has at most %d bytes: %b has %d" % (MAX_KEY, shown(word), len(word))
        )
    return word


def check(options: Given) -> None:
    """Refuse options that mean nothing without UNIQUE."""
    if options.unique is not None:
        return
    for name, value in ((b"KEEP", options.keep), (b"IFEXISTS", options.if_exists)):
        if value is not None:
            raise CommandError(SYNTAX_ERROR + b": %b needs UNIQUE key" % name)


def named(extensions: Extensions | None, body: bytes) -> Extensions | None:
    """With the key of a job with this body: in place of an empty key its SHA-256, in hexadecimal
    digits."""
    if extensions is None or extensions.key != b"":
        return extensions
    return attrs.evolve(extensions, key=hashlib.sha256(body).hexdigest().encode())


def claim(
    node: NodeState, client: Client, job: Job, options: Given, wait: Millis, sync: int
) -> Reply:
    """The client waits until the job has its key and its copies, or another job has the key."""
    deadline = node.mono + wait if wait else 0
    if_exists = RETURN if options.if_exists is None else options.if_exists
    return claims.begin(
        node, client, job, deadline, if_exists=if_exists, is_async=options.is_async, sync=sync
    )
