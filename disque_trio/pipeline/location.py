"""Where lakes and traces are: folders that every machine has mounted; a lake may be in an object
store, too."""

import re
import sys
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from disque_trio.pipeline.errors import PipelineError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")
_HERE: Final = ("", "localhost")
STORES: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "abfs": "abfss", "abfss": "abfss"}
"""Object stores that lakes may be in, and the schemes that `deltalake` gives them."""


def lake_path(text: str) -> str:
    """The absolute path of a lake, or its address in an object store. Raises `PipelineError`."""
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in STORES:
        return local_path(text, "; a lake may be in s3://, gs:// or abfss://, too")
    return f"{STORES[scheme.lower()]}://{rest.rstrip('/')}"


def local_path(text: str, also: str = "") -> str:
    """The absolute path of what a user named: Spark's processes may stand elsewhere.

    Raises `PipelineError`, which says `also` what else would do.
    """
    return str(Path(path_in(text, also)).absolute())


def path_in(text: str, also: str = "") -> str:
    """What a user named as a path, or the path in file:///path.

    Raises `PipelineError` for any other address: as a path, s3a://bucket would be a folder `s3a:`.
    """
    scheme = _SCHEME.match(text)
    if _DRIVE.match(text) and sys.platform != "win32":
        raise PipelineError(
            f"{text}: this system has no drive letters; use a path such as /data/lake"
        )
    if scheme is None:
        return text
    address = urlsplit(text)
    if scheme[1].lower() != "file":
        raise PipelineError(
            f"{text}: {scheme[1]}:// cannot be opened: traces, pages and lakes are in folders that "
            f"are mounted, on a Spark cluster by all machines{also}"
        )
    if address.netloc.lower() not in _HERE:
        raise PipelineError(f"{text}: a file of {address.netloc} cannot be opened from here")
    return unquote(address.path)
