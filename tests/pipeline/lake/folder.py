"""What lies in the folder of a lake."""

from pathlib import Path

from disque_trio.pipeline.lake.store import Lake


def strays(lake: Lake) -> list[str]:
    """The files that nothing names."""
    named = {part.path for parts in lake.snapshot().values() for part in parts}
    found = (path for path in Path(lake.path).rglob("*") if path.is_file())
    names = [str(path.relative_to(lake.path)) for path in found]
    return sorted(name for name in names if name not in named and not name.startswith("_"))
