from typing import Any

import pytest

from disque_trio.pipeline.connector import offsets
from disque_trio.pipeline.connector.offsets import Offset
from disque_trio.pipeline.errors import PipelineError

JOB = "D-" + "a" * 38


def test_an_offset_comes_back_as_it_was() -> None:
    offset = Offset(7, {"a:1": [JOB], "b:2": []})

    assert offsets.load(offset.dumped()) == offset
    assert offset.ids() == [JOB]


@pytest.mark.parametrize(
    "data",
    [{}, {"seq": 1}, {"seq": "1", "jobs": {}}, {"seq": 1, "jobs": {"a:1": ["D-short"]}}, 5],
)
def test_an_offset_of_another_source_is_not_taken(data: Any) -> None:
    with pytest.raises(PipelineError, match="belong to another query"):
        offsets.load(data)
