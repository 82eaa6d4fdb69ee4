"""Reports the status of the service to systemd: a datagram for each change to $NOTIFY_SOCKET.

The protocol is a few lines of text (man sd_notify), so no library is used. Without the variable
nothing is sent, and a lost datagram is ignored.
"""

import contextlib
import os
import socket
from collections.abc import Callable, Mapping
from typing import Final

import trio

_LOOK_EVERY_S: Final = 0.2
"""While jobs are loaded."""
_EXTENSION_US: Final = 30_000_000
"""How much more time to start each report asks for."""
_DATAGRAMS: Final = (socket.AF_UNIX, socket.SOCK_DGRAM)


class Supervisor:
    """The service manager, or the supervisor of workers, that started this process, if any did."""

    def __init__(self, environment: Mapping[str, str], line: socket.socket | None = None) -> None:
        """`line` is the socket to the supervisor of workers, used in place of systemd's."""
        path = environment.get("NOTIFY_SOCKET", "") if line is None else ""
        self._address = b"\0" + os.fsencode(path[1:]) if path.startswith("@") else path
        self._line = line
        self.interval_s = _interval_s(environment) if path or line is not None else 0.0
        """How often WATCHDOG=1 is due; 0 is never."""

    def notify(self, *lines: str) -> None:
        """Send lines such as ``READY=1``. Never waits."""
        text = "\n".join(lines).encode()
        with contextlib.suppress(OSError):
            if self._line is not None:
                self._line.send(text, socket.MSG_DONTWAIT)
            elif self._address:
                with socket.socket(*_DATAGRAMS) as sender:
                    sender.sendto(text, socket.MSG_DONTWAIT, self._address)

    async def attend(self, is_loading: Callable[[], bool], status: str) -> None:
        """Report READY=1 once the node serves, and then WATCHDOG=1 at intervals if wanted."""
        while is_loading():
            self.notify("STATUS=loading jobs", f"EXTEND_TIMEOUT_USEC={_EXTENSION_US}")
            await trio.sleep(_LOOK_EVERY_S)
        self.notify("READY=1", f"STATUS={status}")
        while self.interval_s:
            self.notify("WATCHDOG=1")
            await trio.sleep(self.interval_s)


def _interval_s(environment: Mapping[str, str]) -> float:
    """A third of systemd's watchdog time, if it watches this process."""
    allowed = environment.get("WATCHDOG_USEC", "")
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    return int(allowed) / 3_000_000 if allowed.isdigit() else 0.0
