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
"""Less of a wait is not worth another command."""
Text = str | bytes | bytearray | memoryview
"""Names and bodies; text is sent as UTF-8."""


@attrs.frozen
class Command(Generic[Result]):
    """One request, and the meaning of its reply."""

    words: tuple[bytes, ...]
    meaning: Callable[[Reply], Result]
    """Raises `BadReplyError` for a reply that is invalid for the command."""
    is_repeatable: bool = True
    """May it be repeated if the reply was lost?"""
    wait_s: float = 0.0
    """How long the node may wait before it replies."""
    patience_s: float | None = attrs.field(default=None, kw_only=True)
    """How much longer it may be silent while another node can be asked; None is the `patience_s` of
    the client, which is also that of the last node."""
    features: tuple[str, ...] = ()
    """The features that a node needs to support `words`, by their names in INFO
    (docs/commands.md)."""
    plain: tuple[bytes, ...] | None = None
    """What nodes without these features get instead; None is the same."""
    giver: str = ""
    """The first digits of the id of the node that delivered the jobs. It is asked first, because
    its messages about the delivery may not have reached the other nodes yet."""
    is_sought: bool = False
    """Does it need a node that holds the job? Then others are asked if one answers NOJOB."""
    hears_failures: bool = False
    """Does `meaning` judge errors of the node, too?"""
    for_wait: "Callable[[float], Command[Result]] | None" = attrs.field(
        default=None, kw_only=True, eq=False, repr=False
    )
    """The same command with another wait, if it may wait less at the next node."""

    @property
    def name(self) -> str:
        """The command's name."""
        return self.words[0].decode(errors="backslashreplace")

    def words_for(self, known: Container[str]) -> tuple[bytes, ...]:
        """The words for a node with these features."""
        if self.plain is None or all(each in known for each in self.features):
            return self.words
        if AUTO in self.features and AUTO not in known:
            # A default that a node of an earlier version lacks costs no other option.
            return self._without_auto().words_for(known)
        return self.plain

    def after(self, waited_s: float) -> "Command[Result]":
        """What to ask the next node when others have not answered for so long: no more than what is
        left of the wait."""
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
            raise BadReplyError(f"the node answers {reply!r:.80} to {self.name}") from error


@attrs.frozen(kw_only=True)
class LongWait(Command[Result]):
    """A command that waits so long that it is asked for in parts. A node that answers within
    `PART_S` is known to be alive; one that hangs would be waited for as long as the whole wait."""

    whole: Command[Result]
    """The command in one."""

    @classmethod
    def of(cls, whole: Command[Result]) -> Self:
        """The command in parts."""
        fields: dict[str, Any] = {each: getattr(whole, each) for each in attrs.fields_dict(Command)}
        return cls(**fields, whole=whole)

    def part(self, waited_s: float) -> Command[Result]:
        """What to ask next after so much of the wait."""
        assert self.for_wait is not None, "it waits"
        return self.for_wait(min(self.wait_s - waited_s, PART_S))


def outcome(command: Command[Result], reply: Reply) -> Result | DisqueError:
    """The result, or the error that it would raise."""
    try:
        return command.result(reply)
    except DisqueError as error:
        return error


def word(value: Text | float) -> bytes:
    """A word of a request. Surrogates become the bytes that they stand for."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return str.encode(value, errors="surrogateescape")
    if isinstance(value, int | float):
        return str(value).encode()
    return bytes(memoryview(value))


def is_encodable(text: str, errors: str) -> bool:
    """Has the text UTF-8, with this treatment of surrogates?"""
    try:
        str.encode(text, errors=errors)
    except UnicodeEncodeError:
        return False
    return True


def seconds(value: float | None) -> str | None:
    """With the three decimals that a node reads; without any that are 0, as originals need it."""
    return None if value is None else decimals(value)


def milliseconds(timeout: float | None) -> bytes:
    """A node's timeout in milliseconds. 0 is for ever, and nothing shorter than 1 is sent."""
    if timeout is None:
        return b"0"
    if not 0 <= timeout < math.inf:
        raise ValueError(f"a timeout is 0 or more seconds, or None: {timeout}")
    return b"%d" % max(math.ceil(timeout * 1000), 1)


def span(timeout: float | None) -> float:
    """How long that is; None is for ever."""
    return math.inf if timeout is None else timeout
