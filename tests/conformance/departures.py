"""Steps of the transcripts that are answered differently on purpose: one list, with reasons.

`tests/cluster/test_conformance.py` fails on every other difference, even of wording, and on lines
here that are no longer true. Each reason stands in docs/differences.md too.
"""

from typing import Final

import attrs


@attrs.frozen
class Departure:
    """Steps of one transcript, counted from 0 as the replayer does, and why they differ."""

    transcript: str
    steps: tuple[int, ...]
    reason: str


DEPARTURES: Final[tuple[Departure, ...]] = ()
"""None so far: the transcripts show nothing of the original's defects."""
