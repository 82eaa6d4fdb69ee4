"""Random streams: one for each purpose of a run, so that none disturbs another."""

import random


def stream(seed: int, *purpose: object) -> random.Random:
    """The stream of this seed for this purpose: the same words give the same numbers, always."""
    return random.Random("/".join(map(str, (seed, *purpose))))
