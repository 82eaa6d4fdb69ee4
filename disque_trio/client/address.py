"""Addresses of nodes: host and port or a Unix socket, and the TLS settings."""

from collections.abc import Callable, Sequence

import attrs

from disque_trio.client.errors import URL_TERMS, Terms


@attrs.frozen(kw_only=True)
class Tls:
    """TLS settings; files are in PEM."""

    cacert: str | None = None
    """The file of the trusted authorities; None is those of the system."""
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None
    """The name that the node's certificate must have; None is the host name."""
    is_insecure: bool = False
    """Accept any certificate."""
    terms: Terms = attrs.field(default=URL_TERMS, eq=False, repr=False)
    """The names of the fields in errors."""


@attrs.frozen(kw_only=True)
class Address:
    """The address of a node: host and port, or a Unix socket, which takes precedence."""

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
    """The first nodes to connect to, and the password."""

    seeds: Sequence[Address]
    password: bytes | Callable[[], bytes | None] | None = attrs.field(default=None, repr=False)
    """The password. A function is called for each connection, so the password may be changed."""

    def secret(self) -> bytes | None:
        """The current password; None for none."""
        return self.password() if callable(self.password) else self.password
