"""Small scenarios for the command line."""

from pathlib import Path

import pytest

SMALL = """
schema = 1
name = "small"
[seeds]
ci = 3
[cluster]
nodes = 3
[[producer]]
rate = 2
job = { replicate = 2, retry = "5s" }
[[consumer]]
[end]
chaos = "3s"
drain = "2s"
"""
AGAIN = """
schema = 1
name = "again"
[cluster]
nodes = 2
[[producer]]
rate = 2
job = { replicate = 2, retry = "1s" }
[[consumer]]
ack = { none = 1 }
[end]
chaos = "5s"
"""
"""Jobs come again, and nothing may: the cause is D1, or D5 where two nodes wake together."""


def scenario_file(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name}.toml"
    path.write_text(text, "utf-8")
    return str(path)


Capture = pytest.CaptureFixture[str]
