"""The examples of docs/worker-testing.md, run by a pytest of their own."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.trees import HOME

PAGE: Final = (HOME / "docs" / "worker-testing.md").read_text("utf-8")
FILES: Final = dict(
    re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
)
TESTS: Final = [name for name in FILES if name.startswith("test_")]


def test_every_example_of_the_page_is_run() -> None:
    assert PAGE.count("```python") == len(FILES)
    assert len(TESTS) == len(FILES) - 1


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", TESTS)
def test_the_tests_of_the_page_pass(name: str, tmp_path: Path) -> None:
    for each in ("shop.py", name):
        (tmp_path / each).write_text(FILES[each], "utf-8")
    words = ("-m", "pytest", "-p", "disque_trio.testing.plugin", "-p", "no:cacheprovider")
    done = subprocess.run(
        (sys.executable, *words, "-W", "error", name),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
