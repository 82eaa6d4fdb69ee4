"""A request and the meaning of its reply, without I/O."""

import math
from collections.abc import Callable, Container
from typing import Any, Final, Generic, Self, TypeVar

import attrs

from disque_trio.client.errors import DisqueError
from disque_trio.client.refusals import BadReplyError, refused
from disque_trio.client.settings import PART_S
from disque_trio.statemachine.base import Failure, Reply
from disque_trio.statemachine.joboptions import decimals

Result = TypeVar("Result")
AUTO: Final = "sync-auto"
"""The feature of nodes that support SYNC AUTO."""
SYNC_AUTO: Final = (b"SYNC", b"auto")
_NOTICED_S: Final = 0.1
"""A shorter rest of a wait is not worth another command."""
Text = str | bytes | bytearray | memoryview
"""Names and bodies; text is sent as UTF-8."""


@attrs.frozen
class Command(Generic[Result]):
    """One request, and the meaning of its reply."""

    words: tuple[bytes, ...]
    meaning: Callable[[Reply], Result]
    """Converts the reply to the result. Raises `BadReplyError` for an invalid reply."""
    is_repeatable: bool = True
    """May it be repeated if the reply was lost?"""
    wait_s: float = 0.0
    """How long the node may wait before it replies, in seconds."""
    patience_s: float | None = attrs.field(default=None, kw_only=True)
    """How much longer, in seconds, the node may take while another node can be asked; None is the
    client's `patience_s`, which also applies to the last node."""
    features: tuple[str, ...] = ()
    """The features that a node needs to support `words`, by their names in INFO
    (docs/commands.md)."""
    plain: tuple[bytes, ...] | None = None
    """The request for nodes without these features; None is `words`."""
    giver: str = ""
    """The first digits of the id of the node that delivered the jobs. That node is asked first,
    because other nodes may not have its messages about the delivery yet."""
    is_sought: bool = False
    """Does it require a node that holds the job? Then other nodes are tried after a NOJOB."""
    hears_failures: bool = False
    """Does `meaning` process errors of the node, too?"""
    for_wait: "Callable[[float], Command[Result]] | None" = attrs.field(
        default=None, kw_only=True, eq=False, repr=False
    )
    """Creates the command with another wait, for the next node."""

    @property
    def name(self) -> str:
        """The command's name."""
        return self.words[0].decode(errors="backslashreplace")

    def words_for(self, known: Container[str]) -> tuple[bytes, ...]:
        """The words for a node with these features."""
        if self.plain is None or all(each in known for each in self.features):
            return self.words
        if AUTO in self.features and AUTO not in known:
            # If a node lacks only this default, the other options still apply.
            return self._without_auto().words_for(known)
        return self.plain

    def after(self, waited_s: float) -> "Command[Result]":
        """The command for the next node, after other nodes have not answered for this long: its
        wait is only the rest."""
        if self.for_wait is None or self.wait_s in (0, math.inf) or waited_s < _NOTICED_S:
            return self
        return self.for_wait(max(self.wait_s - waited_s, _NOTICED_S))

    def _without_auto(self) -> "Command[Result]":
        pairs = list(zip(self.words, self.words[1:], strict=False))
        at = pairs.index(SYNC_AUTO)
        features = tuple(each for each in self.features if each != AUTO)
        return attrs.evolve(self, words=self.words[:at] + self.words[at + 2 :], features=features)

    def result(self, reply: Reply) -> Result:
        """The result for a reply. Raises `RefusedError` for an error of the node."""
        if isinstance(reply, Failure) and not self.hears_failures:
            raise refused(reply, self.name)
        try:
            return self.meaning(reply)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise BadReplyError(
                f"the node's reply to {self.name} is invalid: {reply!r:.80}"
            ) from error


@attrs.frozen(kw_only=True)
class LongWait(Command[Result]):
    """A command with a long wait, which is split into several requests. A node that answers within
    `PART_S` is alive; without the split, the client would wait for an unresponsive node during the
    whole wait."""

    whole: Command[Result]
    """The command as one request."""

    @classmethod
    def of(cls, whole: Command[Result]) -> Self:
        """The command, split."""
        fields: dict[str, Any] = {each: getattr(whole, each) for each in attrs.fields_dict(Command)}
        return cls(**fields, whole=whole)

    def part(self, waited_s: float) -> Command[Result]:
        """The next request, after this part of the wait."""
        assert self.for_wait is not None, "it waits"
        return self.for_wait(min(self.wait_s - waited_s, PART_S))


def outcome(command: Command[Result], reply: Reply) -> Result | DisqueError:
    """The result of a reply, or the error that it would raise."""
    try:
        return command.result(reply)
    except DisqueError as error:
        return error


def word(value: Text | float) -> bytes:
    """A word of a request. Surrogate escapes become the bytes that they represent."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return str.encode(value, errors="surrogateescape")
    if isinstance(value, int | float):
        return str(value).encode()
    return bytes(memoryview(value))


def is_encodable(text: str, errors: str) -> bool:
    """Can the text be encoded in UTF-8, with this handling of surrogates?"""
    try:
        str.encode(text, errors=errors)
    except UnicodeEncodeError:
        return False
    return True


def seconds(value: float | None) -> str | None:
    """The number with the three decimals that nodes read, without trailing zeros, as original nodes
    require."""
    return None if value is None else decimals(value)


def milliseconds(timeout: float | None) -> bytes:
    """A timeout for a node, in milliseconds: 0 for None, which is no limit, and otherwise at least
    1. Raises `ValueError` for an invalid one."""
    if timeout is None:
        return b"0"
    if not 0 <= timeout < math.inf:
        raise ValueError(f"timeout is {timeout}: it must be 0 or more seconds, or None")
    return b"%d" % max(math.ceil(timeout * 1000), 1)


def span(timeout: float | None) -> float:
    """The timeout in seconds; infinity for None."""
    return math.inf if timeout is None else timeout
