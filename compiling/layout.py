"""The tree that is compiled: a copy of the package with lowered modules.

``python -m compiling.layout`` prints where it is if it is compiled and of the present source.
"""

import hashlib
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Final

from compiling.lower import PLAIN, lower_all
from compiling.modules import PACKAGE, compiled, extended, module_name

ROOT: Final = PACKAGE.parent
TARGET: Final = ROOT / "build" / "compiled"
SUFFIX: Final[str] = sysconfig.get_config_var("EXT_SUFFIX")
"""How the names of native modules end for this Python on this machine."""


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
    """The sources of the package that stay Python."""
    names = {
        path: ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in PACKAGE.rglob("*.py")
    }
    return {name: path.read_text() for path, name in names.items() if name not in compiled}


def stamp(target: Path) -> Path:
    """The file that says of which source the form in `target` was built."""
    return target / "built-from"


def of_source(optimize: str = "2") -> str:
    """What the compiled form is built from: a digest of the package, of `compiling`, of Python."""
    digest = hashlib.sha256(f"{sys.version} {SUFFIX} -O{optimize}".encode())
    for folder in (PACKAGE, Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"\n{path.relative_to(ROOT)} ".encode() + path.read_bytes())
    return digest.hexdigest()


def is_fresh(target: Path = TARGET, optimize: str = "2") -> bool:
    """Was the form in `target` built of the source as it is now?"""
    return stamp(target).is_file() and stamp(target).read_text() == of_source(optimize)


def _file(target: Path, module: str) -> Path:
    return target.joinpath(*module.split(".")).with_suffix(".py")


if __name__ == "__main__":
    sys.stdout.write(str(TARGET) if is_fresh() else "")
