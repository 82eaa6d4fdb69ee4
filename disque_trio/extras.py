"""Packages that only parts of this one need, and the extra that brings each.

Clients and workers do without them (decision 108).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

_CLI: Final = {"rich": "rich", "prompt_toolkit": "prompt-toolkit"}
_SERVER: Final = {
    "google_crc32c": "google-crc32c",
    "h11": "h11",
    "prometheus_client": "prometheus-client",
    "trio_websocket": "trio-websocket",
    "wsproto": "wsproto",
    **_CLI,
}
PACKAGES: Final = {"cli": _CLI, "server": _SERVER}
"""By extra: the packages that it brings, by the module that is imported."""


class MissingExtraError(ImportError):
    """A part of this package needs an extra that is not installed."""


def check(what: str, extra: str) -> None:
    """Raises `MissingExtraError` if a package of the extra is missing."""
    for module in PACKAGES[extra]:
        if find_spec(module) is None:
            raise _missing(what, extra, module)


@contextmanager
def needed(what: str, extra: str) -> Iterator[None]:
    """If a package of ours that is not installed is imported meanwhile, the error names the extra.
    Raises `MissingExtraError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in _SERVER:
            raise
        raise _missing(what, extra, module) from error


def _missing(what: str, extra: str, module: str) -> MissingExtraError:
    return MissingExtraError(
        f"{what} needs {_SERVER[module]}: pip install 'disque-trio[{extra}]'", name=module
    )
