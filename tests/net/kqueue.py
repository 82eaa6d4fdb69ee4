"""A stand-in for `select.kqueue` where there is none, as kqueue(2) describes it, made of epolls.

What is kept of it: filters are known by descriptor and direction, and EV_DELETE of one that is
not there is ENOENT. A filter that is added again keeps its EV_CLEAR or the lack of it. A
descriptor that is closed loses its filters. EV_EOF comes with input that is still to be read, and
with the socket's error in `fflags`. Nothing is reported that no filter asks for. The queue itself
can be waited for.

What it cannot show is what a real kernel does beyond that.
"""

import errno
import fcntl
import select
import struct
import termios
from collections.abc import Iterable
from typing import Any, Final

import attrs
import pytest

KQ_FILTER_READ: Final = -1
KQ_FILTER_WRITE: Final = -2
KQ_EV_ADD: Final = 0x1
KQ_EV_DELETE: Final = 0x2
KQ_EV_CLEAR: Final = 0x20
KQ_EV_EOF: Final = 0x8000

_BROKEN: Final = select.EPOLLERR | select.EPOLLHUP


@attrs.define
class Kevent:
    """`select.kevent`."""

    ident: int
    filter: int = KQ_FILTER_READ
    flags: int = KQ_EV_ADD
    fflags: int = 0
    data: int = 0
    udata: int = 0


class Kqueue:
    """`select.kqueue`."""

    def __init__(self) -> None:
        self._filters: dict[tuple[int, int], bool] = {}
        """Which there are, and whether each is edge-triggered."""
        self._sets = {
            (KQ_FILTER_READ, False): select.epoll(),
            (KQ_FILTER_READ, True): select.epoll(),
            (KQ_FILTER_WRITE, False): select.epoll(),
        }
        self._all = select.epoll()
        for each in self._sets.values():
            self._all.register(each.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        return self._all.fileno()

    def close(self) -> None:
        for each in (*self._sets.values(), self._all):
            each.close()

    def control(
        self, changes: Iterable[Kevent] | None, most: int, timeout: float | None = None, /
    ) -> list[Kevent]:
        for change in changes or ():
            self._change(change)
        if not most:
            return []
        self._all.poll(timeout)
        events = [event for key in self._sets for event in self._found(key, most)]
        return events[:most]

    def _change(self, change: Kevent) -> None:
        key = change.ident, change.filter
        if change.flags & KQ_EV_DELETE:
            if key not in self._filters:
                raise OSError(errno.ENOENT, "No such file or directory")
            found = self._sets[change.filter, self._filters.pop(key)]
            found.unregister(change.ident)
            return
        assert change.flags & KQ_EV_ADD
        is_edge = bool(change.flags & KQ_EV_CLEAR)
        mask = select.EPOLLOUT
        if change.filter == KQ_FILTER_READ:
            mask = select.EPOLLIN | select.EPOLLRDHUP | (select.EPOLLET if is_edge else 0)
        try:
            self._sets[change.filter, is_edge].register(change.ident, mask)
        except FileExistsError:
            return
        if self._filters.get(key, is_edge) == is_edge:
            self._filters[key] = is_edge
        elif self._is_there(change.ident, change.filter, not is_edge):
            self._sets[change.filter, is_edge].unregister(change.ident)
        else:
            self._filters[key] = is_edge  # that was another descriptor of the same number

    def _is_there(self, fd: int, which: int, is_edge: bool) -> bool:
        try:
            self._sets[which, is_edge].modify(fd, select.EPOLLIN | select.EPOLLRDHUP)
        except FileNotFoundError:
            return False
        return True

    def _found(self, key: tuple[int, bool], most: int) -> Iterable[Kevent]:
        which, is_edge = key
        for fd, mask in self._sets[key].poll(0, most):
            flags = KQ_EV_CLEAR if is_edge else 0
            if which == KQ_FILTER_READ:
                is_over, data = mask & (select.EPOLLRDHUP | _BROKEN), _readable(fd)
            else:
                is_over, data = mask & _BROKEN, 1
            error = errno.ECONNRESET if mask & select.EPOLLERR else 0
            yield Kevent(fd, which, flags | (KQ_EV_EOF if is_over else 0), error, data)


def _readable(fd: int) -> int:
    try:
        return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0])
    except OSError:
        return 1  # it listens


NAMES: Final[dict[str, Any]] = {
    **{name: value for name, value in globals().items() if name.startswith("KQ_")},
    "kevent": Kevent,
    "kqueue": Kqueue,
}
"""What `select` would have."""


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `select` have it."""
    for name, value in NAMES.items():
        monkeypatch.setattr(select, name, value, raising=False)
