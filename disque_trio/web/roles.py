"""Roles of people and programs: what each may do at the web port (docs/http.md)."""

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
"""As what somebody is let in."""
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
"""Rights that nobody has at a port that only reads."""


@attrs.frozen
class User:
    """Who asks."""

    name: str
    role: Role
    is_reading: bool = False
    """Does the port only read?"""
    secret: bytes = attrs.field(default=b"", repr=False)
    """What proved who it is."""

    def may(self, right: Right) -> bool:
        """Has it this right?"""
        return right in ROLES[self.role] and not (self.is_reading and right in CHANGES)

    def may_do(self, operation: Operation) -> bool:
        """May it run this operation?"""
        return self.may(right_for(operation))


STRANGER: Final = User("", NOBODY)


def right_for(operation: Operation) -> Right:
    """What it takes to run an operation."""
    return MANAGE if operation.family == "nodes" else OPERATE
