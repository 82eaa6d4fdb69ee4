"""Limits of the memory that one client may use: for an incomplete request, and for unread replies.

Unauthenticated clients have a much lower limit.
"""

from typing import Final

from disque_trio.driver.sessions import Session
from disque_trio.statemachine.base import Now
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.state import NodeState

MONITOR_LIMIT: Final = 64 << 20
"""The maximum of unsent bytes of a monitor, whose output depends on other clients."""
UNAUTHENTICATED_LIMIT: Final = 1 << 16
"""The maximum size of an incomplete request, or of unread output, of an unauthenticated client."""
UNREAD_SHARE: Final = 4
"""All clients together may leave unread 1/4 of `maxmemory` less the process itself."""
LEAST_UNREAD: Final = 16 << 20
"""The minimum of this limit."""


def is_unauthenticated(client: Client, config: Config) -> bool:
    """Is a password set that the client has not sent yet?"""
    return bool(config.requirepass) and not client.authenticated


def has_sent_too_much(session: Session, config: Config) -> bool:
    """Is the client's incomplete request too long? Called if its input exceeds
    `UNAUTHENTICATED_LIMIT`."""
    parser = session.parser
    if parser.pending:
        return False
    if is_unauthenticated(session.client, config):
        return parser.weight > UNAUTHENTICATED_LIMIT
    return parser.buffered > config.client_query_buffer_limit


def owes_too_much(session: Session, unsent: int, config: Config, now: Now) -> bool:
    """Does the client exceed its output buffer limits? Called at least once per second, for the
    soft limit."""
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
    """The maximum of unread output of all clients together, in bytes."""
    return max((state.config.maxmemory - state.facts.process_bytes) // UNREAD_SHARE, LEAST_UNREAD)
