"""This package as a file that executors import it from, whether or not they have one."""

import io
import zipfile
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]
_EPOCH = (1980, 1, 1, 0, 0, 0)


def ship(spark: Any, folder: Path) -> None:
    """Give the executors of a session the very code that runs here.

    It goes before what is installed there. What the package depends on must be.
    """
    path = folder / f"{_PACKAGE.name}.zip"
    path.write_bytes(zipped())
    spark.sparkContext.addPyFile(str(path))


def zipped() -> bytes:
    """The package: of the same sources, always the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(_PACKAGE.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                name = zipfile.ZipInfo(str(path.relative_to(_PACKAGE.parent)), _EPOCH)
                name.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(name, path.read_bytes())
    return content.getvalue()
