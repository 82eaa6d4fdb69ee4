"""Steps of the recorded transcripts that we answer otherwise on purpose: one list, with reasons.

`tests/cluster/test_conformance.py` fails on every other difference, even of wording, and on lines
here that have become untrue. Each reason stands in docs/differences.md too.
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
"""None so far: what the transcripts show is what the original does well."""
