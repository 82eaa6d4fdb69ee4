"""The words of GETJOB's options, which queues may be named like (decision 21)."""

from collections.abc import Iterable
from typing import Final

BARE: Final = (b"NOHANG", b"WITHCOUNTERS", b"WITHMETA", b"TIED", b"HELD")
VALUED: Final = (b"TIMEOUT", b"COUNT")
"""Options with a number behind them."""
WORDS: Final = BARE + VALUED


def behind_from(queues: Iterable[bytes]) -> list[bytes]:
    """The queues in an order in which none is taken for an option: those named like one first."""
    return sorted(queues, key=lambda name: name.upper() not in WORDS)
