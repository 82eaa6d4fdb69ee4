"""Exit statuses of the commands, besides the common ones (`cli.frame`)."""

from typing import Final

SOUND: Final = 0
DAMAGED: Final = 1
TORN: Final = 3
NEWER: Final = 4
