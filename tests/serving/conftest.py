"""The authorities that sign certificates, as in the tests of sockets."""

from tests.net.conftest import authority, foreign_authority

__all__ = ["authority", "foreign_authority"]
