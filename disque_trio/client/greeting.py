"""What a client says first on a connection, and what it learns. No I/O."""

from collections.abc import Sequence

import attrs

from disque_trio.client import commands
from disque_trio.client.refusals import AuthenticationError
from disque_trio.statemachine.base import Failure, Reply


@attrs.frozen
class Greeting:
    """AUTH, if there is a password, and HELLO."""

    password: bytes | None = attrs.field(repr=False)

    @property
    def requests(self) -> list[tuple[bytes, ...]]:
        """What to send."""
        auth = [] if self.password is None else [(b"AUTH", self.password)]
        return [*auth, commands.hello().words]

    def meaning(self, replies: Sequence[Reply]) -> list[Reply]:
        """HELLO's reply. Raises `AuthenticationError`, or `UnavailableError` while it loads."""
        *auths, hello = replies
        for auth in auths:
            if isinstance(auth, Failure):
                code, _, text = auth.text.decode(errors="backslashreplace").partition(" ")
                raise AuthenticationError(code, text, "AUTH")
        return commands.hello().result(hello)
