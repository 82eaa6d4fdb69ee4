"""The first requests on a connection, and the meaning of the replies. No I/O."""

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
    """What a node reports about itself and the cluster."""

    hello: Sequence[Reply]
    """The reply to HELLO."""
    features: frozenset[str] = frozenset()
    """The features of the node, by their names in INFO (docs/commands.md)."""


@attrs.frozen
class Greeting:
    """The greeting: AUTH if there is a password, HELLO, INFO, and CLIENT SETNAME if there is a
    name."""

    password: bytes | None = attrs.field(repr=False)
    name: str = ""
    """The name of the connection in CLIENT LIST."""
    is_lenient: bool = False
    """Continue with a node that rejects HELLO, because it is loading or lacks the command?"""

    @property
    def requests(self) -> list[tuple[bytes, ...]]:
        """The requests of the greeting."""
        auth = [] if self.password is None else [(b"AUTH", self.password)]
        name = [(b"CLIENT", b"SETNAME", as_one_word(self.name))] if self.name else []
        return [*auth, commands.hello().words, commands.info("server").words, *name]

    def meaning(self, replies: Sequence[Reply], address: Address) -> Introduction:
        """The introduction in the replies of the node. Raises `AuthenticationError`, or
        `UnavailableError` while the node is loading, unless the greeting is lenient."""
        if self.name:  # if the node rejects it, the connection has no name
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
        if isinstance(info, Failure):  # renamed or disabled
            return Introduction(answer)
        features = commands.info().result(info).get("features", "")
        return Introduction(answer, frozenset(features.split(",")) - {""})

    @staticmethod
    def end(error: LostError, address: Address) -> DisqueError:
        """The error of a connection that ended during the greeting. A node without capacity for
        clients, or that serves only its own machine, sends the reason as the first reply."""
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
