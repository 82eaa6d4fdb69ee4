"""The number of files that a process may open, and its distribution to clients and bus links."""

import contextlib
import resource
from typing import Final

MAX_LINKS: Final = 2048
"""The most links of peers to a node: twice the nodes that its table accepts from the bus."""
_OWN_FILES: Final = 128
"""Descriptors that belong neither to clients nor to links: listeners, logs, files."""
_RESERVED_FILES: Final = _OWN_FILES + 2 * MAX_LINKS
_MOST_OF_MACOS: Final = 10_240
"""OPEN_MAX of macOS, whatever the hard limit is."""
_LEAST_LINKS: Final = 64
"""Links of each direction if the system allows fewer files than wanted."""
_LEAST_CLIENTS: Final = 32
"""With fewer clients a node is useless."""


class FileLimitError(Exception):
    """The limit of open files is too low for a node. The text has the reason and the remedy."""


def check_file_limit(clients: int, room: int) -> None:
    """Raise FileLimitError if there is room for far fewer clients than wanted."""
    if room >= min(clients, _LEAST_CLIENTS):
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = _OWN_FILES + 2 * _LEAST_LINKS + _LEAST_CLIENTS
    raise FileLimitError(
        f"this process may open {soft} files, and a node needs at least {least}: raise the hard "
        f"limit ('ulimit -Hn', LimitNOFILE of systemd, --ulimit nofile of Docker) to {least} or "
        f"more, and to {clients + _RESERVED_FILES} for {clients} clients"
    )


def raise_file_limit(clients: int) -> int:
    """Raise the limit for this many clients. Return the number of clients for which it suffices."""
    wanted = clients + _RESERVED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _covers(soft, wanted):
        return clients
    # Only a privileged process may raise the hard limit; macOS accepts no more than this from any
    # process.
    for limits in ((wanted, max(hard, wanted)), (hard, hard), (_MOST_OF_MACOS, hard)):
        with contextlib.suppress(OSError, ValueError, OverflowError):
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            break
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _covers(soft, wanted):
        return clients
    return max(1, min(clients, soft - _OWN_FILES - 2 * _LEAST_LINKS))


def link_room(clients: int) -> int:
    """Return how many links peers may open, in addition to this many clients and an equal number of
    own links."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MAX_LINKS
    return max(_LEAST_LINKS, min(MAX_LINKS, (limit - _OWN_FILES - clients) // 2))


def _covers(limit: int, wanted: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= wanted
