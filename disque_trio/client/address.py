"""Where nodes are: host and port, or a Unix socket, and how to speak TLS with them."""

from collections.abc import Callable, Sequence

import attrs

from disque_trio.client.errors import URL_TERMS, Terms


@attrs.frozen(kw_only=True)
class Tls:
    """How to speak TLS: files in PEM."""

    cacert: str | None = None
    """The authorities to trust; None is those of the system."""
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None
    """The name that the node's certificate must have; None is the host's."""
    is_insecure: bool = False
    """Accept any certificate."""
    terms: Terms = attrs.field(default=URL_TERMS, eq=False, repr=False)
    """What errors call the fields."""


@attrs.frozen(kw_only=True)
class Address:
    """Where a node listens: host and port, or a Unix socket, which takes precedence."""

    host: str = "127.0.0.1"
    port: int = 7711
    path: str | None = None
    tls: Tls | None = None

    def __str__(self) -> str:
        if self.path is not None:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@attrs.frozen
class Cluster:
    """Where to begin, and with which password."""

    seeds: Sequence[Address]
    password: bytes | Callable[[], bytes | None] | None = attrs.field(default=None, repr=False)
    """A function is asked for each connection, so that the password may be replaced."""

    def secret(self) -> bytes | None:
        """The password of now."""
        return self.password() if callable(self.password) else self.password
