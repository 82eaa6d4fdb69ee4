import json
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from disque_trio.__main__ import main
from disque_trio.cli.pipeline import doctor
from disque_trio.pipeline import java


def consult(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    status = main(["pipeline", "doctor", *options])
    return status, capsys.readouterr().out


def test_where_all_is_well_it_names_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    status, told = consult(capsys)

    assert status == 0
    assert all(
        word in told for word in ("pyspark 4.", "pyarrow ", "pandas 2.", "deltalake 1.", "Java ")
    )
    assert told.endswith("Spark can run here\n")


def test_what_is_missing_is_told_with_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", version)
    monkeypatch.setattr(java, "search", lambda: (None, [java.Refusal("PATH", "it is Java 8")]))

    status, told = consult(capsys)

    assert status == 2
    assert "problem  this machine: pyspark is not installed" in told
    assert "the Java of PATH cannot be used: it is Java 8" in told
    assert "pip install 'disque-trio[spark]' installs one" in told
    assert told.endswith("Spark cannot run here\n")


def test_a_version_that_nobody_has_tried_is_a_warning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"pyspark": "4.3.0", "pyarrow": "26.0.1", "pandas": "3.0.1", "deltalake": "1.6.6"}
    monkeypatch.setattr(doctor, "version", versions.__getitem__)

    status, told = consult(capsys, "--json")

    facts = json.loads(told)
    assert (status, facts["status"]) == (1, "warnings")
    found = [each["what"] for each in facts["findings"] if each["level"] == "warning"]
    assert found == ["pandas 3.0.1 is untested; tested versions are 2.2 or newer, before 3"]


def test_what_is_known_to_work_is_what_the_package_asks_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "requires", lambda _: ["pandas>=7,<9; extra == 'spark'"])

    _, told = consult(capsys)

    assert "is untested; tested versions are 7 or newer, before 9" in told
    assert "note     this machine: pyspark 4." in told, "nothing is said of this one"


def test_without_metadata_nothing_is_known_of_versions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def requires(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "requires", requires)

    assert consult(capsys)[1].endswith("Spark can run here\n")


def test_a_java_home_that_does_not_run_is_a_warning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    status, told = consult(capsys)

    assert status == 1
    assert "the Java of JAVA_HOME cannot be used: /nowhere/bin/java does not run" in told


def test_another_spark_than_that_of_the_package_is_a_warning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")

    status, told = consult(capsys)

    assert status == 1
    assert "Spark in /opt/spark is used" in told


def test_it_can_be_asked_to_run_a_tiny_job(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = consult(capsys, "--start")

    assert status == 0
    assert "ran a small job in" in told
    assert spark.range(2).count() == 2, "the session of the tests is still there"


def test_a_cluster_that_is_not_there_is_a_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disque_trio.pipeline.session._active", lambda: None)

    status, told = consult(capsys, "--start", "--master", "spark://127.0.0.1:1")

    assert status == 2
    assert "no Spark master answers at spark://127.0.0.1:1: Connection refused" in told


def test_yarn_without_the_configuration_of_its_cluster_is_a_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disque_trio.pipeline.session._active", lambda: None)
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)

    status, told = consult(capsys, "--master", "yarn")

    assert status == 2
    assert "Spark finds no YARN: set HADOOP_CONF_DIR" in told


def test_a_java_process_that_has_ended_is_a_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a YARN or a Kubernetes that does not answer."""

    def ends(*_: object, **__: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("disque_trio.pipeline.shipping.running", ends)

    status, told = consult(capsys, "--master", "k8s://https://127.0.0.1:1")

    assert status == 2
    assert "Spark's Java process has ended; does the cluster answer at this address?" in told


def test_a_master_that_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "doctor", "--master", "nonsense"]) == 2
    assert "nonsense is not a master of Spark" in capsys.readouterr().err


def test_a_master_is_tried_without_being_told_to(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disque_trio.pipeline.session._active", lambda: None)

    status, told = consult(capsys, "--master", "spark://127.0.0.1:1")

    assert status == 2
    assert "Spark cannot run here" in told
