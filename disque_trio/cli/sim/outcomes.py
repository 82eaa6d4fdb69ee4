"""What the commands end with, besides what all end with (`cli.frame`)."""

from typing import Final

PASSED: Final = 0
VIOLATED: Final = 1
NOTHING_TESTED: Final = 3
