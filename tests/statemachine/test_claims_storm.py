"""UNIQUE in whole clusters: many clients at all nodes want the same few keys."""

import pytest

from tests.statemachine.claiming import Storm


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(12))
def test_one_job_of_a_key_lives_and_everybody_is_told_its_id(seed: int) -> None:
    storm = Storm(seed, nodes=3 + seed % 3)

    storm.storm()

    storm.judge()
    assert len(storm.lives) < len(storm.adds)
