"""Roles of people and programs, and their rights at the web port (docs/http.md)."""

from collections.abc import Mapping
from typing import Final

import attrs

from disque_trio.observe.operations.operation import Operation
from disque_trio.statemachine.values import WEB_ROLES

Right = str
SEE: Final[Right] = "see"
"""See pages, figures and jobs."""
JOBS: Final[Right] = "jobs"
"""Add and take jobs."""
OPERATE: Final[Right] = "operate"
"""Run operations on queues, jobs, flows, workers and schedules."""
MANAGE: Final[Right] = "manage"
"""Run operations on nodes, and read the audit log."""

Role = str
"""The role of a user."""
READER, CLIENT, OPERATOR, ADMIN = WEB_ROLES
NOBODY: Final[Role] = ""
ROLES: Final[Mapping[Role, frozenset[Right]]] = {
    READER: frozenset({SEE}),
    CLIENT: frozenset({JOBS}),
    OPERATOR: frozenset({SEE, JOBS, OPERATE}),
    ADMIN: frozenset({SEE, JOBS, OPERATE, MANAGE}),
    NOBODY: frozenset(),
}
CHANGES: Final = frozenset({JOBS, OPERATE, MANAGE})
"""Rights that are refused at a read-only port."""


@attrs.frozen
class User:
    """The user of a request."""

    name: str
    role: Role
    is_reading: bool = False
    """Is the port read-only?"""
    secret: bytes = attrs.field(default=b"", repr=False)
    """The stored proof of the account with which the user logged in."""

    def may(self, right: Right) -> bool:
        """Does the user have this right?"""
        return right in ROLES[self.role] and not (self.is_reading and right in CHANGES)

    def may_do(self, operation: Operation) -> bool:
        """May the user run this operation?"""
        return self.may(right_for(operation))


STRANGER: Final = User("", NOBODY)


def right_for(operation: Operation) -> Right:
    """Return the right that an operation requires."""
    return MANAGE if operation.family == "nodes" else OPERATE
