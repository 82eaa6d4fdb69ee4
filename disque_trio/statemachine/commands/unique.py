"""ADDJOB UNIQUE: the key of the new job (docs/bus.md, "Keys of unique jobs")."""

import hashlib

import attrs

from disque_trio.statemachine import claims
from disque_trio.statemachine.base import (
    CommandError,
    Millis,
    Reply,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.joboptions import Options
from disque_trio.statemachine.key_facts import MAX_KEY
from disque_trio.statemachine.keys import RETURN
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import shown


def check_key(word: bytes) -> bytes:
    """The key itself. Raises CommandError if it is too long."""
    if len(word) > MAX_KEY:
        raise CommandError(
            b"ERR A key has at most %d bytes: %b has %d" % (MAX_KEY, shown(word), len(word))
        )
    return word


def named(extensions: Extensions | None, body: bytes) -> Extensions | None:
    """With the key of a job with this body: in place of an empty key its SHA-256, in hexadecimal
    digits."""
    if extensions is None or extensions.key != b"":
        return extensions
    return attrs.evolve(extensions, key=hashlib.sha256(body).hexdigest().encode())


def claim(
    node: NodeState, client: Client, job: Job, options: Options, wait: Millis, sync: int
) -> Reply:
    """The client waits until the job has its key and its copies, or another job has the key."""
    deadline = node.mono + wait if wait else 0
    if_exists = RETURN if options.if_exists is None else options.if_exists
    return claims.begin(
        node, client, job, deadline, if_exists=if_exists, is_async=options.is_async, sync=sync
    )
