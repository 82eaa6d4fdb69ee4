"""How far a job has come in a worker.

The engine compares with the constants: in Python 3.11 each look-up of a member in an enum is a call
of a function, and there would be a dozen for each job.
"""

import enum
from typing import Final


class Stage(enum.Enum):
    """How far a job has come."""

    HELD = "delivered, and not begun"
    RUNNING = "its handler runs"
    WAITING = "failed, and held until its delay is over, for a node that has no NACK DELAY"
    SETTLING = "its handler has ended, and a node is to learn the outcome"


HELD: Final = Stage.HELD
RUNNING: Final = Stage.RUNNING
WAITING: Final = Stage.WAITING
SETTLING: Final = Stage.SETTLING
