"""The keys of `--json` stay from release to release (docs/compatibility.md)."""

import json
import uuid
from pathlib import Path

import pytest

from tests.cluster.json_outputs import FOLDER, Outputs, printed
from tests.cluster.processes import Cluster


@pytest.fixture(scope="module")
def today(pair: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    return printed(pair, tmp_path_factory.mktemp(f"q-{uuid.uuid4().hex[:8]}"))


@pytest.mark.parametrize("recorded", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_keys_that_a_release_has_printed_are_still_printed(recorded: Path, today: Outputs) -> None:
    released: Outputs = json.loads(recorded.read_text())

    gone = {
        command: missing
        for command, names in released.items()
        if (missing := sorted(set(names) - set(today.get(command, ()))))
    }
    assert gone == {}


@pytest.mark.slow
def test_each_command_prints_a_key_or_a_list(today: Outputs) -> None:
    assert [command for command, names in today.items() if not names] == []
