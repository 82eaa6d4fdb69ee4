"""A path names a folder of this machine; any other address is refused, not made a folder."""

import sys
from pathlib import Path

import pytest

from disque_trio.__main__ import main
from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.location import local_path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/data/lake", "/data/lake"),
        ("file:///data/my%20lake", "/data/my lake"),
        ("FILE://localhost/data", "/data"),
        ("/data/a:b", "/data/a:b"),
    ],
)
def test_a_path_may_be_a_file_address(text: str, path: str) -> None:
    assert local_path(text) == path


def test_a_relative_path_begins_here() -> None:
    assert local_path("lake") == str(Path.cwd() / "lake")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s3a://bucket/lake", "s3a:// cannot be opened"),
        ("hdfs://host:8020/lake", "hdfs:// cannot be opened"),
        ("s3a:/bucket/lake", "s3a:// cannot be opened"),
        ("file://host/lake", "a file of host cannot be opened from here"),
    ],
)
def test_an_address_elsewhere_is_refused(text: str, said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        local_path(text)


@pytest.mark.skipif(sys.platform == "win32", reason="there it is a path")
@pytest.mark.parametrize("text", ["C:\\lake", "C:/lake"])
def test_a_drive_is_refused_where_there_are_none(text: str) -> None:
    with pytest.raises(PipelineError, match="has no drives"):
        local_path(text)


@pytest.mark.parametrize(
    "words",
    [
        ["pipeline", "ingest", "s3a://bucket/lake", "t.jsonl"],
        ["pipeline", "ingest", "lake", "s3a://bucket/t.jsonl"],
        ["pipeline", "query", "s3a://bucket/lake", "jobs"],
        ["pipeline", "report", "s3a://bucket/lake", "--html", "out.html"],
        ["pipeline", "compact", "s3a://bucket/lake"],
        ["sim", "sweep", "SCENARIO", "--seeds", "0:1", "--lake", "s3a://bucket/lake"],
        ["sim", "sweep", "SCENARIO", "--seeds", "0:1", "--out", "s3a://bucket/out"],
    ],
)
def test_no_command_makes_a_folder_of_an_address(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario = str(Path("scenarios/calm-baseline.toml").absolute())
    monkeypatch.chdir(tmp_path)
    Path("t.jsonl").touch()

    status = main([scenario if word == "SCENARIO" else word for word in words])

    assert status == 2
    assert "s3a:// cannot be opened" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["t.jsonl"]
