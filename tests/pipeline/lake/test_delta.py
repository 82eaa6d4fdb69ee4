"""Lakes that other programs have changed with features of Delta of theirs."""

import json
from pathlib import Path
from typing import Any

import pytest

from disque_trio.pipeline.lake.store import Lake, LakeError
from tests.pipeline.lake.test_store import TABLE


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"), create=True)


def raise_protocol(lake: Lake, protocol: dict[str, Any]) -> None:
    """As another program does it that turns a feature of Delta on."""
    log = Path(lake.path, "_delta_log")
    number = len(list(log.glob("*.json")))
    Path(log, f"{number:020d}.json").write_text(json.dumps({"protocol": protocol}) + "\n")


@pytest.mark.parametrize(
    ("protocol", "needs"),
    [
        ((3, 7, ["deletionVectors"], ["deletionVectors"]), "needs deletionVectors of Delta"),
        ((3, 7, ["columnMapping"], ["columnMapping"]), "needs columnMapping of Delta"),
        ((2, 5), "needs reader version 2 of Delta"),
        ((3, 7, ["laterFeature"], ["laterFeature"]), "laterFeature"),
        ((9, 9), "reader version 9"),
    ],
)
def test_a_table_whose_files_may_not_be_read_as_they_are_is_refused(
    lake: Lake, protocol: tuple[Any, ...], needs: str
) -> None:
    lake.commit([lake.write("rows", "s", "a", TABLE)])
    names = ("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures")
    raise_protocol(lake, dict(zip(names, protocol, strict=False)))

    with pytest.raises(LakeError, match=f"the lake .*{needs}"):
        lake.parts("rows")


def test_a_table_that_needs_a_newer_program_to_write_is_read_and_says_so(lake: Lake) -> None:
    part = lake.write("rows", "s", "a", TABLE)
    lake.commit([part])
    newer = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["laterFeature"]}
    raise_protocol(lake, newer)

    assert lake.parts("rows") == [part]
    with pytest.raises(LakeError, match=r"cannot use the lake .*laterFeature"):
        lake.commit([lake.write("rows", "s", "b", TABLE)])
