"""An environment for each library, under `build/`, with the versions of its requirements file."""

import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

from benchmarks.contenders import ROOT
from benchmarks.tool import BenchmarkError

REQUIREMENTS: Final = Path(__file__).parent / "requirements"
FOLDER: Final = ROOT / "build" / "peers"
_LIMIT_S: Final = 600.0


def python(name: str) -> Path:
    """The interpreter of a library's environment, which is made if it is not there or not up to
    date. BenchmarkError if the library cannot be installed."""
    place = FOLDER / name
    found = place / "bin" / "python"
    wanted = requirements(name)
    stamp = place / "installed.txt"
    if not stamp.exists() or stamp.read_text("utf-8") != wanted:
        venv.create(place, clear=True, with_pip=True)
        _pip(found, "install", "--quiet", "-r", str(REQUIREMENTS / f"{name}.txt"))
        stamp.write_text(wanted, "utf-8")
    return found


def requirements(name: str) -> str:
    """The text of the requirements file."""
    return (REQUIREMENTS / f"{name}.txt").read_text("utf-8")


def version(name: str, text: str) -> str:
    """The version of a package by a requirements file or `pip freeze`; empty if it is not there."""
    pins = (line.partition("==") for line in text.splitlines())
    return next((pin for package, _, pin in pins if package.lower() == name.lower()), "")


def frozen(interpreter: Path) -> list[str]:
    """What is installed, as `pip freeze` says it."""
    return _pip(interpreter, "freeze").splitlines()


def _pip(interpreter: Path, *words: str) -> str:
    command = [str(interpreter), "-m", "pip", "--disable-pip-version-check", *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"pip {words[0]} was not done after {_LIMIT_S:g} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise BenchmarkError(f"pip {words[0]} failed: {lines[-1] if lines else done.returncode}")
    return done.stdout


def own() -> Path:
    """The interpreter of our library: the one that runs this."""
    return Path(sys.executable)
