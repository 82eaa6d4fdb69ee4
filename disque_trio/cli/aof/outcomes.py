"""What the commands end with, besides what all end with (`cli.frame`)."""

from typing import Final

SOUND: Final = 0
DAMAGED: Final = 1
TORN: Final = 3
