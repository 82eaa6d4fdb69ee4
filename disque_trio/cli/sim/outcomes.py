"""Exit statuses of the simulator's commands, besides those of all commands (`cli.frame`)."""

from typing import Final

PASSED: Final = 0
VIOLATED: Final = 1
NOTHING_TESTED: Final = 3
