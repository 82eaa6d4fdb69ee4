"""Libraries in C that stand between a process and its system (LD_PRELOAD)."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.cluster.power.disk import RECORDING

COMPILER: Final = os.environ.get("CC", "cc")
RECORDER: Final = Path(__file__).parent / "recorder.c"


def is_possible() -> bool:
    """Is there a C compiler?"""
    return shutil.which(COMPILER) is not None


def compiled(source: Path, folder: Path) -> Path:
    """The library of a source."""
    library = folder / f"{source.stem}.so"
    flags = ["-O1", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *flags, "-o", library, source, "-ldl"], check=True)
    return library


def recording(library: Path) -> dict[str, str]:
    """The environment of a process whose calls `recorder.c` records, in its working directory."""
    return {
        "LD_PRELOAD": str(library),
        "POWER_DIRECTORY": ".",
        "POWER_RECORDING": RECORDING,
        "POWER_SYNC_US": "2000",
    }
