"""`python tests/cluster/elsewhere.py NAME server ...`: disque-trio as if this were not Linux.

Whatever macOS does not have is hidden before the package is imported. NAME is `kqueue` for a
stand-in of that, or `tasks` for a system that has neither. Trio has got hold of the real modules by
then, for on Linux it cannot do without.
"""

import builtins
import fcntl
import os
import resource
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
_OF_OS: Final = (
    "copy_file_range", "eventfd", "fdatasync", "memfd_create", "pidfd_open", "posix_fadvise",
    "posix_fallocate", "sched_getaffinity", "splice",
)  # fmt: skip
_OF_SOCKET: Final = (
    "SOCK_CLOEXEC", "SOCK_NONBLOCK", "SO_BINDTODEVICE", "SO_PEERCRED", "TCP_DEFER_ACCEPT",
    "TCP_KEEPIDLE", "TCP_QUICKACK", "TCP_USER_TIMEOUT",
)  # fmt: skip
_KEYWORDS: Final = ("epoll", "EPOLL", "POLLRDHUP")


def _without(name: str, is_hidden: Callable[[str], bool]) -> types.ModuleType:
    """A copy of a module for those that import it from now on."""
    copy = types.ModuleType(name)
    found = vars(sys.modules[name])
    vars(copy).update({key: value for key, value in found.items() if not is_hidden(key)})
    sys.modules[name] = copy
    return copy


def _refusing(call: Callable[..., Any]) -> Callable[..., Any]:
    def refuse(path: Any, *rest: Any, **more: Any) -> Any:
        if isinstance(path, str | bytes | os.PathLike) and os.fspath(path)[:5] in {
            "/proc", b"/proc"
        }:  # fmt: skip
            raise FileNotFoundError(2, "No such file or directory", path)
        return call(path, *rest, **more)

    return refuse


def hide(kernel: str) -> None:
    """Make this process think that it is on macOS."""
    import trio  # noqa: F401, PLC0415

    from tests.net import kqueue  # noqa: PLC0415

    _without("select", lambda key: key.startswith(_KEYWORDS))
    _without("socket", lambda key: key in _OF_SOCKET)
    if kernel == "kqueue":
        vars(sys.modules["select"]).update(kqueue.NAMES)
    for name in _OF_OS:
        if hasattr(os, name):
            delattr(os, name)
    del resource.RUSAGE_THREAD
    for name in [key for key in vars(fcntl) if key.startswith(("F_OFD", "F_SETPIPE"))]:
        delattr(fcntl, name)
    for name in ("open", "stat", "listdir", "readlink", "scandir"):
        setattr(os, name, _refusing(getattr(os, name)))
    builtins.open = _refusing(open)
    sys.platform = "darwin"


def _main(words: list[str]) -> int:
    sys.path[0] = str(ROOT)
    kernel, *arguments = words
    hide(kernel)
    from disque_trio.__main__ import main  # noqa: PLC0415

    return main(arguments)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
