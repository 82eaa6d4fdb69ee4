"""docs/worker-codecs.md: its programs run."""

import re
from typing import Any, Final

import pytest

pytest.importorskip("cryptography")

from disque_trio.testing.inline.kit import Inline
from tests.trees import HOME

PAGE: Final = (HOME / "docs" / "worker-codecs.md").read_text("utf-8")
PARTS: Final = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_programs_run(disque_inline: Inline) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(PARTS[0], "worker-codecs.md", "exec"), names)
    text = "".join(map(str, range(80_000)))

    names["print_report"].blocking.enqueue(text)
    [job] = disque_inline.jobs()
    assert len(job.body) < 200
    assert len(names["store"]) == 1
    [ran] = disque_inline.blocking.run_all(names["app"])

    assert ran.result == len(text)
    assert names["store"] == {}, "it is deleted when the job has ended"

    for part in PARTS[1:]:
        exec(compile(part, "worker-codecs.md", "exec"), names)
    own = names["Bzip2"]()
    assert own.decode(own.encode(b"a" * 20_000), 20_000) == b"a" * 20_000
    with pytest.raises(ValueError, match="more than"):
        own.decode(own.encode(b"a" * 20_000), 19_999)
