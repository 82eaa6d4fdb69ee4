"""Names of a rotated trace: ``trace.jsonl.1``, ``trace.jsonl.2`` and so on, the newest last.

A file is renamed once and keeps its new name, so a file does not move while it is being ingested.
"""

import errno
import os
import re
from typing import Final

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,6}")
"""Up to seven digits: dates, which other programs append, have eight."""
_MOST: Final = 9_999_999


def rotate(path: str) -> str:
    """Rename the file to its number. Return its new name. Raise OSError."""
    number = max(_numbers(path), default=0) + 1
    if number > _MOST:
        raise OSError(errno.EEXIST, f"there is a file with the highest number, {path}.{_MOST}")
    name = f"{path}.{number}"
    os.rename(path, name)
    return name


def remove_old(path: str, keep: int) -> None:
    """Keep the newest `keep` rotated files. Raise OSError."""
    for number in sorted(_numbers(path))[:-keep]:
        os.unlink(f"{path}.{number}")


def _numbers(path: str) -> list[int]:
    folder, name = os.path.split(path)
    endings = [
        each.removeprefix(f"{name}.") for each in os.listdir(folder) if each.startswith(f"{name}.")
    ]
    return [int(each) for each in endings if _NUMBER.fullmatch(each)]
