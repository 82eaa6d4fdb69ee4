"""Sends this package to executors as an archive: they run the same code in the same form."""

import io
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from disque_trio.pipeline import session

_PACKAGE: Final = Path(__file__).parents[1]
_FOLDER: Final = "disque_trio_shipped"
"""Where an executor unpacks the archive, in the directory that its Python processes start in."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


@contextmanager
def running(
    master: str, *, app: str, memory: str, settings: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """A session (`session.running`) whose executors run the code of this process.

    It takes precedence over an installed package. The dependencies must be installed there. Native
    modules of another version of Python or kind of machine are not found there, so that the Python
    sources beside them run.
    """
    with (
        tempfile.TemporaryDirectory(prefix="disque-trio-") as folder,
        session.running(master, app=app, memory=memory, settings=settings) as spark,
    ):
        if not session.is_local(master):
            path = Path(folder, f"{_PACKAGE.name}.zip")
            path.write_bytes(zipped())
            # Python cannot import native modules from a zip, as `addPyFile` would have it do.
            spark.sparkContext.addArchive(f"{path}#{_FOLDER}")
            spark.sparkContext.environment["PYTHONPATH"] = _FOLDER
        yield spark


def zipped() -> bytes:
    """The package as a zip, with its native modules if it has any: the same files give the same
    bytes."""
    content = io.BytesIO()
    natives = _PACKAGE.parent.glob(f"{_PACKAGE.name}__mypyc.*")
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted([*natives, *_PACKAGE.rglob("*")]):
            if path.is_file() and path.suffix != ".pyc":
                name = zipfile.ZipInfo(str(path.relative_to(_PACKAGE.parent)), _EPOCH)
                name.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(name, path.read_bytes())
    return content.getvalue()
