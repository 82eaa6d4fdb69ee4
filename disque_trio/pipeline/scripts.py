"""Small scripts that stand before a program, kept in the cache folder."""

import os
import tempfile
from pathlib import Path


def keep(script: Path, text: str) -> None:
    """Have this script there, able to run. Raises OSError where none can be kept."""
    if script.is_file() and script.read_text() == text and os.access(script, os.X_OK):
        return
    script.parent.mkdir(parents=True, exist_ok=True)
    # Others may make or run it at this moment: it is never there in part.
    handle, part = tempfile.mkstemp(dir=script.parent, prefix=f".{script.name}-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(part, 0o755)
    os.replace(part, script)
