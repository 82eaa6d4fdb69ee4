"""Users' type checkers see the signatures of both clients, and those of tasks.

Mypy reads both `typed` together with all tests, and pyright is run here.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trees import HOME

PYRIGHT = shutil.which("basedpyright", path=str(Path(sys.executable).parent)) or shutil.which(
    "basedpyright"
)


@pytest.mark.skipif(PYRIGHT is None, reason="pip install -e '.[types]'")
@pytest.mark.parametrize("room", ["client", "worker"])
def test_pyright_agrees_with_mypy(room: str, tmp_path: Path) -> None:
    settings = {
        "include": [str(HOME / f"tests/{room}/typed.py")],
        "typeCheckingMode": "strict",
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    project = tmp_path / "pyrightconfig.json"
    project.write_text(json.dumps(settings), encoding="utf-8")
    words = [str(PYRIGHT), "--project", str(project), "--pythonpath", sys.executable]

    told = subprocess.run(
        [*words, "--outputjson"], cwd=HOME, check=False, capture_output=True, text=True
    )

    found = json.loads(told.stdout)
    assert found["summary"]["filesAnalyzed"] == 1
    assert found["generalDiagnostics"] == []
