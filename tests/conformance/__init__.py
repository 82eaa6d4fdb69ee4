"""What original servers answered to clients, said to each other and wrote to disk (README.md)."""

import json
from pathlib import Path
from typing import Any, Final

_HERE: Final = Path(__file__).parent
TRANSCRIPTS: Final = sorted(_HERE.glob("transcripts/*.json"))
JOURNALS: Final = sorted(_HERE.glob("aof/*.aof"))
NODES_FILES: Final = sorted(_HERE.glob("aof/*.nodes.conf"))


def bus_rows() -> list[dict[str, Any]]:
    """Every row of the captured bus: steps of the client, and messages of the nodes."""
    return [json.loads(line) for line in (_HERE / "bus-capture.jsonl").read_text().splitlines()]


def bus_messages() -> list[dict[str, Any]]:
    """The rows that are messages; `hex` has the bytes."""
    return [row for row in bus_rows() if "hex" in row]
