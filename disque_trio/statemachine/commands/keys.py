"""SHOW KEY and CANCEL KEY: find or end the job that has a key."""

from typing import Final

from disque_trio.statemachine import key_cancel, longcommands
from disque_trio.statemachine.base import SYNTAX_ERROR, CommandError, Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commands import ended, jobs
from disque_trio.statemachine.commands.parse import check_key
from disque_trio.statemachine.commands.usage import wrong_number
from disque_trio.statemachine.job import check_id
from disque_trio.statemachine.keys import KeyName
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.suggestions import shown

SHOW_USAGE: Final = "id [ENDED] | KEY queue key [LOCAL]"
_KEY: Final = b"KEY"
_WORDS: Final = 4
_ENDED: Final = b"ENDED"
_LOCAL: Final = b"LOCAL"


def show(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """SHOW: all fields of one job, or the job that has a key."""
    if len(args) == 2:
        return jobs.show(node, client, args)
    if len(args) == _WORDS - 1 and args[2].upper() == _ENDED:
        job_id = check_id(args[1])
        if job_id in node.jobs:
            return jobs.show(node, client, args)
        return longcommands.run(node, client, ended.show(node, job_id))
    if len(args) == _WORDS + 1 and args[_WORDS].upper() == _LOCAL:
        return key_cancel.known_here(node, _name(args[:_WORDS]))
    if len(args) != _WORDS:
        raise CommandError(wrong_number("show", SHOW_USAGE))
    return key_cancel.begin(node, client, _name(args), cancels=False)


def cancel(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """CANCEL KEY: end the job that has the key. The reply is 1, or 0 if no job has it."""
    return key_cancel.begin(node, client, _name(args), cancels=True)


def _name(args: list[bytes]) -> KeyName:
    """The queue and the key after the word KEY. Raises CommandError."""
    command, word, queue, key = args
    if word.upper() != _KEY:
        name = command.upper()
        raise CommandError(
            SYNTAX_ERROR + b": %b stands in place of KEY: %b KEY queue key" % (shown(word), name)
        )
    if not key:
        raise CommandError(
            b'ERR The key is empty: with UNIQUE "" a job has the SHA-256 of its body as key, in'
            b" hexadecimal digits"
        )
    return queue, check_key(key)
