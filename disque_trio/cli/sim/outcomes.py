"""What the commands end with."""

from typing import Final

PASSED: Final = 0
VIOLATED: Final = 1
USAGE: Final = 2
NOTHING_TESTED: Final = 3
INTERRUPTED: Final = 130
"""What shells report for a program ended by Ctrl-C."""


class UsageError(Exception):
    """Something that was asked for cannot be done: why, in words for people."""
