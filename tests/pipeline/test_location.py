"""A path names a folder of this machine; any other address is refused, not made a folder."""

import sys
from pathlib import Path

import pytest

from disque_trio.__main__ import main
from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.lake.store import Lake
from disque_trio.pipeline.location import lake_path, local_path


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


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("s3://bucket/a/lake/", "s3://bucket/a/lake"),
        ("s3a://bucket/lake", "s3://bucket/lake"),
        ("gs://bucket/lake", "gs://bucket/lake"),
        ("abfss://box@account.dfs.core.windows.net/lake",) * 2,
        ("file:///data/lake", "/data/lake"),
    ],
)
def test_a_lake_may_be_in_an_object_store(text: str, address: str) -> None:
    assert lake_path(text) == address


def test_a_lake_anywhere_else_is_refused_with_what_would_do() -> None:
    with pytest.raises(PipelineError, match=r"hdfs:// cannot be opened.* may be in s3://, gs://"):
        lake_path("hdfs://host:8020/lake")


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
    with pytest.raises(PipelineError, match="has no drive letters"):
        local_path(text)


@pytest.mark.parametrize(
    "words",
    [
        ["pipeline", "ingest", "hdfs://host/lake", "t.jsonl"],
        ["pipeline", "ingest", "lake", "s3a://bucket/t.jsonl"],
        ["pipeline", "query", "hdfs://host/lake", "jobs"],
        ["pipeline", "report", "hdfs://host/lake", "--html", "out.html"],
        ["pipeline", "compact", "hdfs://host/lake"],
        ["sim", "sweep", "SCENARIO", "--seeds", "0:1", "--lake", "hdfs://host/lake"],
        ["sim", "sweep", "SCENARIO", "--seeds", "0:1", "--out", "s3a://bucket/out"],
        ["sim", "run", "SCENARIO", "--trace", "s3a://bucket/t.jsonl"],
        ["sim", "run", "SCENARIO", "--html", "s3a://bucket/page.html"],
        ["sim", "run", "s3a://bucket/calm.toml"],
        ["sim", "replay", "s3a://bucket/t.jsonl"],
        ["sim", "expand", "SCENARIO", "--out", "s3a://bucket/plan.json"],
        ["sim", "draw", "SCENARIO", "--out", "s3a://bucket/page.html"],
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
    scheme = next(word for word in words if "://" in word).partition(":")[0]
    assert f"{scheme}:// cannot be opened" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["t.jsonl"]


def test_a_report_goes_into_a_folder_of_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Lake.open(str(tmp_path / "lake"), create=True)
    words = ["pipeline", "report", str(tmp_path / "lake"), "--html"]

    assert main([*words, "s3a://bucket/page.html"]) == 2
    assert "s3a://bucket/page.html: s3a:// cannot be opened" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "none" / "page.html")]) == 2
    assert f"the directory {tmp_path / 'none'} does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "SCENARIO", "--trace", "none/t.jsonl"],
        ["run", "SCENARIO", "--trace", "none/t.parquet"],
        ["run", "SCENARIO", "--html", "none/page.html"],
        ["draw", "SCENARIO", "--out", "none/page.html"],
        ["expand", "SCENARIO", "--out", "none/plan.json"],
    ],
)
def test_a_folder_that_is_missing_is_named(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario = str(Path("scenarios/calm-baseline.toml").absolute())
    monkeypatch.chdir(tmp_path)

    assert main(["sim", *(scenario if word == "SCENARIO" else word for word in words)]) == 2
    told = capsys.readouterr().err
    assert f"cannot write {words[-1]}: the directory none does not exist" in told


def test_a_trace_may_be_named_by_its_address(tmp_path: Path) -> None:
    address = f"file://{tmp_path}/a%20b.jsonl"

    assert main(["sim", "run", "scenarios/calm-baseline.toml", "--trace", address]) == 0

    assert (tmp_path / "a b.jsonl").exists()
