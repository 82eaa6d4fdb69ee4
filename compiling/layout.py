"""The tree that is compiled: a copy of the package with lowered modules."""

import shutil
from pathlib import Path
from typing import Final

from compiling.lower import PLAIN, lower_all
from compiling.modules import PACKAGE, compiled, extended, module_name

ROOT: Final = PACKAGE.parent
TARGET: Final = ROOT / "build" / "compiled"
_READ: Final = ("disque_trio", "tests", "benchmarks")


def lay_out(target: Path) -> list[Path]:
    """The package in `target`, partly lowered; which files are to be compiled."""
    shutil.rmtree(target, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, target / "disque_trio", ignore=ignored)
    sources = {module_name(path): (PACKAGE / f"{path}.py").read_text() for path in compiled()}
    lowered = lower_all(sources, extended(sources, others(sources)))
    lowered[PLAIN] = Path(__file__).with_name("plain.py").read_text()
    files = {_file(target, module): text for module, text in lowered.items()}
    for file, text in files.items():
        file.write_text(text)
    return list(files)


def others(compiled: dict[str, str]) -> dict[str, str]:
    """The sources that stay Python, with those of tests and benchmarks."""
    paths = [path for part in _READ for path in (ROOT / part).rglob("*.py")]
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    return {name: path.read_text() for path, name in names.items() if name not in compiled}


def _file(target: Path, module: str) -> Path:
    return target.joinpath(*module.split(".")).with_suffix(".py")
