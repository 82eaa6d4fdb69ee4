"""What a client says first on a connection, and what it learns. No I/O."""

from collections.abc import Sequence

import attrs

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.client.command import outcome
from disque_trio.client.errors import DisqueError, LostError, ended
from disque_trio.client.naming import as_one_word
from disque_trio.client.refusals import AuthenticationError, refused
from disque_trio.statemachine.base import Failure, Reply


@attrs.frozen
class Introduction:
    """What a node tells of itself and of the cluster."""

    hello: Sequence[Reply]
    """The reply to HELLO."""
    features: frozenset[str] = frozenset()
    """What it knows beyond an original node, by the names of INFO (docs/commands.md)."""


@attrs.frozen
class Greeting:
    """AUTH, if there is a password, HELLO, INFO, and CLIENT SETNAME, if there is a name."""

    password: bytes | None = attrs.field(repr=False)
    name: str = ""
    """What the node is to call the connection in CLIENT LIST."""
    is_lenient: bool = False
    """Go on with a node that refuses HELLO, because it loads its jobs or has no such command?"""

    @property
    def requests(self) -> list[tuple[bytes, ...]]:
        """What to send."""
        auth = [] if self.password is None else [(b"AUTH", self.password)]
        name = [(b"CLIENT", b"SETNAME", as_one_word(self.name))] if self.name else []
        return [*auth, commands.hello().words, commands.info("server").words, *name]

    def meaning(self, replies: Sequence[Reply], address: Address) -> Introduction:
        """What the node there says. Raises `AuthenticationError`, or `UnavailableError` while it
        loads, unless the greeting is lenient."""
        if self.name:  # a node that refuses it has no name for the connection
            replies = replies[:-1]
        *auths, hello, info = replies
        for auth in auths:
            if isinstance(auth, Failure):
                code, _, text = auth.text.decode(errors="backslashreplace").partition(" ")
                raise _of_node(AuthenticationError(code, text, "AUTH"), address)
        answer = outcome(commands.hello(), hello)
        if isinstance(answer, DisqueError):
            if not self.is_lenient or isinstance(answer, AuthenticationError):
                raise _of_node(answer, address)
            answer = []
        if isinstance(info, Failure):  # renamed, or taken away
            return Introduction(answer)
        features = commands.info().result(info).get("features", "")
        return Introduction(answer, frozenset(features.split(",")) - {""})

    @staticmethod
    def end(error: LostError, address: Address) -> DisqueError:
        """Why the connection has ended before the greeting was over. A node that has no place for a
        client, or serves its own machine only, says so in place of the first reply."""
        match error.replies:
            case [Failure() as reply]:
                refusal = refused(reply, "HELLO")
                is_of_node = isinstance(refusal, AuthenticationError)
                return _of_node(refusal, address) if is_of_node else ended(str(address), reply)
        return error.before_the_request()


def _of_node(error: DisqueError, address: Address) -> DisqueError:
    if isinstance(error, AuthenticationError):
        error.node = str(address)
    return error
