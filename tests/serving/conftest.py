"""Who signs certificates, as in the tests of sockets."""

from tests.net.conftest import authority, stranger

__all__ = ["authority", "stranger"]
