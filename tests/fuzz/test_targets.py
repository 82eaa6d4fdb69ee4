import random

import pytest

from tests.fuzz.mutation import mutated
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_readers_stand_what_is_nearly_right(name: str) -> None:
    target, rng = TARGETS[name], random.Random(name)
    seeds = target.seeds()

    for seed in seeds:
        target.run(seed)
    for _ in range(300):
        target.run(mutated(rng, rng.choice(seeds), seeds))
