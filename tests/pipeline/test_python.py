import os
import subprocess
import sys
from pathlib import Path

import pytest

from disque_trio.pipeline import python


def said(launcher: str, path: str) -> list[str]:
    program = "import os, sys; print(sys.executable); print(os.environ['PYTHONPATH'])"
    done = subprocess.run(
        [launcher, "-c", program],
        env=os.environ | {"PYTHONPATH": path, "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_launcher_is_this_python_without_sparks_zip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    launcher = python.launcher()

    assert launcher.startswith(str(tmp_path))
    assert said(launcher, "/spark/lib/pyspark.zip:/spark/lib/py4j.zip:/own") == [
        sys.executable,
        "/spark/lib/py4j.zip:/own",
    ]
    assert said(launcher, "/own:/spark/lib/pyspark.zip")[1] == "/own"
    assert python.launcher() == launcher


def test_without_a_place_for_the_launcher_python_starts_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    assert python.launcher() == sys.executable
