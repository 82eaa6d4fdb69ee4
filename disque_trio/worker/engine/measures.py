"""What is measured of the jobs of a queue (`pace`). Times are microseconds."""

import attrs


@attrs.define(eq=False)
class Pace:
    """How fast the jobs of a queue end here, and what they are like."""

    since: int
    count: int = 0
    """How many have ended since then."""
    before: int = 0
    """How many ended in the span before."""
    lease: int = 0
    """Of the last job that came."""
    body: int = 0
    """Bytes that the next one may have."""
    has_once: bool = False
    """Jobs with RETRY 0 have come."""
