"""What the commands end with."""

from typing import Final

SOUND: Final = 0
DAMAGED: Final = 1
USAGE: Final = 2
TORN: Final = 3
INTERRUPTED: Final = 130
"""What shells report for a program ended by Ctrl-C."""


class UsageError(Exception):
    """Something that was asked for cannot be done: why, in words for people."""
