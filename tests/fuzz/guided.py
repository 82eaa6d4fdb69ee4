"""`python -m tests.fuzz.guided TARGET [libFuzzer options] [FOLDER]`: inputs that reach new code.

Atheris watches which branches an input takes, and goes on from those that take new ones. It ends
the process itself, so each target has one of its own.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["disque_trio"]):
    from tests.fuzz.targets import TARGETS


def main(words: list[str]) -> None:
    """Begin with the target's own examples."""
    name, *options = words
    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(target.seeds()):
            Path(folder, str(number)).write_bytes(seed)
        atheris.Setup([f"fuzz {name}", "-max_len=8192", *options, folder], target.run)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
