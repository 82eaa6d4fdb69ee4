"""What lies in the folder of a lake."""

from pathlib import Path

from disque_trio.pipeline.lake.store import Lake


def strays(lake: Lake) -> list[str]:
    """The files of tables and drafts that nothing names."""
    named = {part.path for parts in lake.snapshot().values() for part in parts}
    found = (path for path in Path(lake.path).rglob("*") if path.is_file())
    names = [str(path.relative_to(lake.path)) for path in found if "_delta_log" not in path.parts]
    named |= {"lake.json"}
    return sorted(name for name in names if not (name in named or is_commit(name) or is_kept(name)))


def is_commit(name: str) -> bool:
    """Is it the file of a recent commit?"""
    return name.startswith("recent/") and name.endswith(".json")


def is_kept(name: str) -> bool:
    """Are these the rows of a view, which nothing needs?"""
    return name.startswith("derived/") and name.endswith(".parquet")
