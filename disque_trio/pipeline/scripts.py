"""Small scripts that start a program, kept in the cache folder."""

import os
import tempfile
from pathlib import Path


def keep(script: Path, text: str) -> None:
    """Write the executable script unless it exists. Raises OSError if it cannot be written."""
    if script.is_file() and script.read_text() == text and os.access(script, os.X_OK):
        return
    script.parent.mkdir(parents=True, exist_ok=True)
    # Another process may write or run it at the same time: it must never be there in part.
    handle, part = tempfile.mkstemp(dir=script.parent, prefix=f".{script.name}-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(part, 0o755)
    os.replace(part, script)
