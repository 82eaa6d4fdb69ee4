"""Sends this package to executors as a zip, so that they run the same code."""

import io
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from disque_trio.pipeline import session

_PACKAGE = Path(__file__).parents[1]
_EPOCH = (1980, 1, 1, 0, 0, 0)


@contextmanager
def running(
    master: str, *, app: str, memory: str, settings: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """A session (`session.running`) whose executors run the code of this process.

    It takes precedence over an installed package. The dependencies must be installed there.
    """
    with (
        tempfile.TemporaryDirectory(prefix="disque-trio-") as folder,
        session.running(master, app=app, memory=memory, settings=settings) as spark,
    ):
        if not session.is_local(master):
            path = Path(folder, f"{_PACKAGE.name}.zip")
            path.write_bytes(zipped())
            spark.sparkContext.addPyFile(str(path))
        yield spark


def zipped() -> bytes:
    """The package as a zip: the same sources give the same bytes. Native modules cannot be imported
    from a zip."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(_PACKAGE.rglob("*")):
            if path.is_file() and path.suffix not in (".pyc", ".so"):
                name = zipfile.ZipInfo(str(path.relative_to(_PACKAGE.parent)), _EPOCH)
                name.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(name, path.read_bytes())
    return content.getvalue()
