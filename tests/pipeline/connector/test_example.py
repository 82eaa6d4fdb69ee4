"""The worked example of docs/pipeline-connector.md, as it stands there."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.processes import SOON_S, Cluster, becomes
from tests.pipeline.connector.desk import drain, given, lengths

DOCUMENT = Path("docs/pipeline-connector.md")


@pytest.mark.slow
def test_words_of_one_queue_are_counted_into_another(
    session: Any, cluster: Cluster, tmp_path: Path
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (example,) = [block for block in blocks if "queue=" in block]
    once = {"to": 2, "be": 2, "or": 1, "not": 1, "that": 1}
    for run in ("one", "again with a new checkpoint"):
        for line in ("to be or", "not to be", "that"):
            cluster[0].client.add("lines", line)
        exec(example, {"spark": session, "checkpoint": str(tmp_path / run), **given(cluster)})

    totals: Counter[str] = Counter()
    for job in drain(cluster, "counts", 10):
        count = json.loads(job.body)
        totals[count["word"]] += count["count"]
    assert totals == {word: 2 * count for word, count in once.items()}
    becomes(lambda: lengths(cluster, "lines"), 0, SOON_S, "the lines are acknowledged")
