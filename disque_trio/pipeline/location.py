"""Where lakes and traces are: folders and files that every machine has mounted."""

import re
import sys
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from disque_trio.pipeline.errors import PipelineError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")
_HERE: Final = ("", "localhost")


def local_path(text: str) -> str:
    """The absolute path of what a user named: Spark's processes may stand elsewhere.

    Raises `PipelineError`.
    """
    return str(Path(path_in(text)).absolute())


def path_in(text: str) -> str:
    """What a user named as a path, or the path in file:///path.

    Raises `PipelineError` for any other address: as a path, s3a://bucket would be a folder `s3a:`.
    """
    scheme = _SCHEME.match(text)
    if _DRIVE.match(text) and sys.platform != "win32":
        raise PipelineError(f"{text}: this machine has no drives; give a path such as /data/lake")
    if scheme is None:
        return text
    address = urlsplit(text)
    if scheme[1].lower() != "file":
        raise PipelineError(
            f"{text}: {scheme[1]}:// cannot be opened: lakes, traces and pages are in folders that "
            "are mounted, on a Spark cluster by all machines. Mount the storage, and give its path"
        )
    if address.netloc.lower() not in _HERE:
        raise PipelineError(f"{text}: a file of {address.netloc} cannot be opened from here")
    return unquote(address.path)
