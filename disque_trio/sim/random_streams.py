"""Random streams: one for each purpose in a run, so that draws for one do not shift another."""

import random


def stream(seed: int, *purpose: object) -> random.Random:
    """Return the stream of this seed for this purpose: the same arguments give the same numbers."""
    return random.Random("/".join(map(str, (seed, *purpose))))
