"""How much memory one client may hold: in an unfinished request, and in replies it has not read.

Unauthenticated clients, which still owe their password, have a much lower limit.
"""

from typing import Final

from disque_trio.driver.sessions import Session
from disque_trio.statemachine.base import Now
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.state import NodeState

MONITOR_LIMIT: Final = 64 << 20
"""Unsent bytes beyond which a monitor is cut off: other clients decide how much it is sent."""
UNAUTHENTICATED_LIMIT: Final = 1 << 16
"""Bytes that an unauthenticated client may have in an unfinished request, or leave unread."""
UNREAD_SHARE: Final = 4
"""All clients together may leave unread this part of what `maxmemory` leaves beside the process,"""
LEAST_UNREAD: Final = 16 << 20
"""and at least this much."""


def is_unauthenticated(client: Client, config: Config) -> bool:
    """Does the client still owe its password?"""
    return bool(config.requirepass) and not client.authenticated


def has_sent_too_much(session: Session, config: Config) -> bool:
    """Is its unfinished request too long? Asked once it has more than `UNAUTHENTICATED_LIMIT`."""
    parser = session.parser
    if parser.pending:
        return False
    if is_unauthenticated(session.client, config):
        return parser.weight > UNAUTHENTICATED_LIMIT
    return parser.buffered > config.client_query_buffer_limit


def owes_too_much(session: Session, unsent: int, config: Config, now: Now) -> bool:
    """Does it read too slowly? Asked at least once a second, for the soft limit."""
    hard, soft, soft_s = config.client_output_buffer_limit
    if session.client.is_monitor:
        hard = min(hard or MONITOR_LIMIT, MONITOR_LIMIT)
    if is_unauthenticated(session.client, config):
        hard = min(hard or UNAUTHENTICATED_LIMIT, UNAUTHENTICATED_LIMIT)
    if soft and unsent > soft:
        session.over_since = session.over_since or now.mono
    else:
        session.over_since = 0
    too_long = session.over_since and now.mono - session.over_since > soft_s * 1000
    return bool(too_long or (hard and unsent > hard))


def most_unread(state: NodeState) -> int:
    """How much all clients together may leave unread."""
    return max((state.config.maxmemory - state.facts.process_bytes) // UNREAD_SHARE, LEAST_UNREAD)
