"""A simulated node's spill-directory: bodies are kept aside in memory, and read when they leave.

The heap engine passes messages, replies and records on as objects, without encoding them, so the
bodies are read here and not by the encoder.
"""

from collections.abc import Sequence

import attrs

from disque_trio.statemachine.base import Map, Reply, Set, Spilled
from disque_trio.statemachine.lengthy import whole
from disque_trio.statemachine.messages import JobCopy, Message, ReplJob, YourJobs
from disque_trio.statemachine.records import LoadJob, Record


class BodyInMemory(Spilled):
    """A body that the machine must not look into."""

    __slots__ = ("_body",)

    def __init__(self, body: bytes) -> None:
        super().__init__(len(body))
        self._body = body

    def __bytes__(self) -> bytes:
        return self._body


class SimSpill:
    """The `Spill` of a simulated node."""

    def write(self, bodies: Sequence[bytes]) -> list[Spilled]:
        """Put them aside."""
        return [BodyInMemory(body) for body in bodies]


def whole_message(message: Message) -> Message:
    """The message as it arrives: with its bodies."""
    if isinstance(message, ReplJob | YourJobs):
        copies = tuple([_whole_copy(copy) for copy in message.copies])
        return attrs.evolve(message, copies=copies)
    return message


def _whole_copy(copy: JobCopy) -> JobCopy:
    return attrs.evolve(copy, body=bytes(copy.body))


def whole_record(record: Record) -> Record:
    """The record as the journal has it, likewise."""
    if isinstance(record, LoadJob) and isinstance(record.copy.body, Spilled):
        return LoadJob(_whole_copy(record.copy))
    return record


def whole_reply(reply: Reply) -> Reply:
    """The reply as it arrives, likewise."""
    reply = whole(reply)
    if isinstance(reply, Spilled):
        return bytes(reply)
    if isinstance(reply, list):
        return [whole_reply(each) for each in reply]
    assert not isinstance(reply, Map | Set), reply
    return reply
