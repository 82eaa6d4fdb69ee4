"""Exit statuses of a worker."""

from typing import Final

CLEAN: Final = 0
"""The worker was stopped or its work is done, and every job that it had started has ended."""
FAILED: Final = 1
"""The worker could not start, or ended because of a bug of the library."""
INTERRUPTED: Final = 3
"""The worker stopped while jobs ran; other workers receive them."""
RESTART: Final = 75
"""The worker must be restarted: too many handlers do not end, or it has run `max_jobs` jobs."""
REFUSED: Final = 77
"""All nodes reject the worker: its password is wrong or missing, or it lacks permissions."""
