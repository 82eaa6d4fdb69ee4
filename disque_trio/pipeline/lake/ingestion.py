"""Ingests files into a lake: a file counts once, however often it comes, and bad ones are reported.

Pieces of files are read by Spark's executors, which see the files and the lake under the same
paths. One commit at the end makes all of it count.
"""

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from disque_trio.pipeline.lake import shape
from disque_trio.pipeline.lake.files import LakeError, LakeFiles, Part
from disque_trio.pipeline.lake.reading import Piece, read
from disque_trio.pipeline.lake.store import INGESTING, Lake, Source, Version
from disque_trio.pipeline.lake.survey import (
    LINES,
    BadFileError,
    Found,
    NothingYetError,
    files_in,
    survey,
)

_PIECE: Final = 64 << 20
"""Bytes of lines in one piece."""
_REPLACED: Final = (
    "it was moved or replaced while it was read, for example by rotation: ingest it again"
)
_TASKS: Final = 200
"""More would only cost."""


@attrs.frozen
class Outcome:
    """The result for the files."""

    taken: tuple[Source, ...]
    known: tuple[str, ...]
    """Files that the lake had already."""
    bad: dict[str, str]
    """By path: why the file was not ingested."""

    @property
    def rows(self) -> int:
        """New ones, of traces or results."""
        return sum(source.rows for source in self.taken)


def ingest(spark: Any, lake: Lake, paths: Sequence[str], *, run: str = shape.LIVE) -> Outcome:
    """Take in these files, and what lies in these folders. `run` names the cluster that the traces
    of live nodes are of. Raises `LakeError`."""
    read: dict[Piece, list[Part] | str] = {}
    while True:
        seen = lake.now()
        found, known, bad, bases = _surveyed(lake.sources(seen), files_in(paths), run)
        pieces = {each.path: list(_pieces(each)) for each in found}
        read |= _read_all(spark, lake, [each for some in pieces.values() for each in some], read)
        parts, faults = _sorted_out(pieces, read)
        bad |= faults | {each.path: _REPLACED for each in found if each.is_replaced}
        for path, base in bases.items():
            if base in bad:
                bad[path] = bad[base]
        known = [path for path in known if path not in bad]
        good = [each for each in found if each.path not in bad]
        taken = [_source(each, parts.get(each.path, [])) for each in good]
        # Another ingestion may have been quicker, and may know some of these files.
        made = [part for each in good for part in parts.get(each.path, [])]
        if _commit(lake, good, made, taken, seen):
            return Outcome(tuple(taken), tuple(known), bad)


def _surveyed(
    known: list[Source], paths: Sequence[str], run: str
) -> tuple[list[Found], list[str], dict[str, str], dict[str, str]]:
    """What there is to read, what is known, what is bad, and by path a file of these that another
    one begins with: it is known only if that one is good."""
    found: list[Found] = []
    old: list[str] = []
    bad: dict[str, str] = {}
    bases: dict[str, str] = {}
    for path in paths:
        try:
            each = survey(path, run, known)
        except NothingYetError:
            continue
        except BadFileError as error:
            bad[path] = str(error)
            continue
        if base := next((other for other in found if _begins_with(each, other)), None):
            bases[path] = base.path
        if each.is_new:
            found.append(each)
            known.append(each.source)  # the same under two names counts once, too
        else:
            old.append(path)
    return found, old, bad, bases


def _begins_with(each: Found, other: Found) -> bool:
    return each.base == other.source.sha256


def _pieces(found: Found) -> Iterator[Piece]:
    size, step = found.source.size, _PIECE if found.sort == LINES else found.source.size
    begin = found.begin
    while begin < size:
        end = _line_end(found.path, begin + step, size) if begin + step < size else size
        yield Piece(
            path=found.path,
            sort=found.sort,
            begin=begin,
            end=end,
            scenario=found.scenario,
            run=found.run,
            seed=0 if found.plan is None else found.plan.seed,
            name=f"{found.source.sha256[: shape.RUN_DIGITS]}-{begin}",
        )
        begin = end


def _line_end(path: str, at: int, size: int) -> int:
    with Path(path).open("rb") as file:
        file.seek(at)
        return min(at + len(file.readline()), size)


_OUTCOMES: Final = pa.schema(
    [("piece", pa.int32()), ("error", pa.string()), ("is_ours", pa.bool_()), ("parts", pa.string())]
)


def _read_all(
    spark: Any, lake: Lake, wanted: Sequence[Piece], read: Container[Piece]
) -> dict[Piece, list[Part] | str]:
    """The parts of the pieces that are not read yet, or what is wrong with one."""
    pieces = [each for each in wanted if each not in read]
    if not pieces:
        return {}
    tasks = min(len(pieces), _TASKS)
    folder = LakeFiles(lake.path)  # executors need not have what commits need

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                facts = {"piece": number, **_attempt(folder, pieces[number])}
                yield pa.RecordBatch.from_pylist([facts], schema=_OUTCOMES)

    found: dict[Piece, list[Part] | str] = {}
    frame = spark.range(0, len(pieces), 1, tasks).mapInArrow(work, shape.for_spark(_OUTCOMES))
    for row in frame.collect():
        if row.is_ours:
            raise LakeError(row.error)
        parts = [Part(**facts) for facts in json.loads(row.parts or "[]")]
        found[pieces[row.piece]] = parts if row.error is None else row.error
    return found


def _attempt(lake: LakeFiles, piece: Piece) -> dict[str, Any]:
    try:
        return {"parts": json.dumps([attrs.asdict(part) for part in read(lake, piece)])}
    except BadFileError as error:
        return {"error": str(error)}
    except LakeError as error:
        return {"error": str(error), "is_ours": True}


def _sorted_out(
    pieces: Mapping[str, Sequence[Piece]], read: Mapping[Piece, list[Part] | str]
) -> tuple[dict[str, list[Part]], dict[str, str]]:
    """The parts by path of the file, and what was wrong by path."""
    parts: dict[str, list[Part]] = {}
    bad: dict[str, str] = {}
    for path, some in pieces.items():
        for found in (read[each] for each in some):
            if isinstance(found, str):
                bad.setdefault(path, found)
            else:
                parts.setdefault(path, []).extend(found)
    return parts, bad


def _source(found: Found, parts: Sequence[Part]) -> Source:
    return attrs.evolve(found.source, rows=sum(part.rows for part in parts))


def _commit(
    lake: Lake, found: Sequence[Found], parts: list[Part], sources: Sequence[Source], over: Version
) -> bool:
    """The parts, and a row for each trace that is not known yet."""
    for each in found:
        if each.sort != "results" and not each.begin:
            row = shape.traces_table(each.plan, each.run)
            name = f"{each.source.sha256[: shape.RUN_DIGITS]}"
            parts.append(lake.write("traces", each.scenario, name, row))
    return lake.commit([part for part in parts if part.rows], sources, over, INGESTING)


__all__ = ["LakeError", "Outcome", "ingest"]
