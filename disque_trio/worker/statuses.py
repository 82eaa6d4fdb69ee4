"""Exit statuses of a worker."""

from typing import Final

CLEAN: Final = 0
"""It was told to stop, or its work is done, and every job that it had begun has ended."""
FAILED: Final = 1
"""It could not begin, or a mistake of the library has ended it."""
INTERRUPTED: Final = 3
"""It had to stop while jobs ran: other workers will get them."""
RESTART: Final = 75
"""It is to be started again: too many handlers do not end, or it has run as many jobs as it was
told to."""
REFUSED: Final = 77
"""A node refuses it: the password is wrong or missing."""
