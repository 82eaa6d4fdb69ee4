import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.pipeline import connecting, python


def said(launcher: str, path: str) -> list[str]:
    program = "import os, sys; print(sys.executable); print(os.environ['PYTHONPATH'])"
    done = subprocess.run(
        [launcher, "-c", program],
        env=os.environ | {"PYTHONPATH": path, "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_launcher_is_this_python_without_sparks_zip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    launcher = python.launcher()

    assert launcher.startswith(str(tmp_path))
    assert said(launcher, "/spark/lib/pyspark.zip:/spark/lib/py4j.zip:/own") == [
        sys.executable,
        "/spark/lib/py4j.zip:/own",
    ]
    assert said(launcher, "/own:/spark/lib/pyspark.zip")[1] == "/own"
    assert python.launcher() == launcher


def test_without_a_place_for_the_launcher_python_starts_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    assert python.launcher() == sys.executable


# The connection to Spark.

PYSPARK = {
    "__init__.py": "import sys; assert sys.stdin.read() == 'import', 'the test has failed'",
    "util.py": "def local_connect_and_auth(*where): raise AssertionError(where)",
    "runner.py": """\
import json, os, socket, sys
from pyspark import util

port = int(os.environ["PYTHON_WORKER_FACTORY_PORT"])
file, connection = util.local_connect_and_auth(port, "the secret")
assert isinstance(connection, socket.socket) and __name__ == "__main__"
file.write(json.dumps([sys.argv, sys.path[0], os.getpid()]).encode())
file.close()
""",
}
"""A PySpark whose import waits until it is told on the standard input."""


class Spark:
    """What waits for a process: one connection, with a timeout."""

    def __init__(self, folder: Path) -> None:
        (folder / "pyspark").mkdir()
        for name, text in PYSPARK.items():
            (folder / "pyspark" / name).write_text(text)
        self._folder = folder
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(60)

    def starts(self, *words: str) -> subprocess.Popen[bytes]:
        """A process, as Spark starts it."""
        variables = {
            "PYTHONPATH": str(self._folder),
            "PYTHON_WORKER_FACTORY_PORT": str(self._listener.getsockname()[1]),
            "PYTHON_WORKER_FACTORY_SECRET": "the secret",
        }
        return subprocess.Popen(
            [python.launcher(), *words],
            env=os.environ | variables,
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def accepts(self) -> socket.socket:
        """A connection that has told the secret."""
        connection = self._listener.accept()[0]
        connection.settimeout(60)
        said = b""
        while len(said) < 14:
            said += connection.recv(14 - len(said))
        assert said == b"\0\0\0\x0athe secret"
        return connection

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spark]:
    """Shadows the real one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    spark = Spark(tmp_path)
    yield spark
    spark.close()


def test_a_process_connects_before_it_imports_pyspark_and_keeps_the_connection(
    spark: Spark, tmp_path: Path
) -> None:
    with (
        spark.starts("-m", "pyspark.runner", "and more") as process,
        spark.accepts() as connection,
    ):
        connection.sendall(b"\0\0\0\x02ok")
        assert process.stdin is not None
        process.stdin.write(b"import")
        process.stdin.close()
        argv, folder, pid = json.loads(connection.makefile("rb").read())

    assert argv == [str(tmp_path / "pyspark" / "runner.py"), "and more"]
    assert folder == str(tmp_path)
    assert pid == process.pid
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"\0\0\0\x03err", b"replied b'err' to the secret, not ok"),
        (b"\0\0", b"Spark closed the connection before it accepted the secret"),
    ],
)
def test_a_process_whose_secret_is_not_accepted_says_so(
    answer: bytes, told: bytes, spark: Spark
) -> None:
    with spark.starts("-m", "pyspark.runner") as process:
        with spark.accepts() as connection:
            connection.sendall(answer)
        errors = process.communicate()[1]

    assert told in errors
    assert process.returncode == 1


def test_the_connection_is_for_the_first_call_that_is_for_its_place() -> None:
    ours, theirs = socket.socketpair()
    asked = []

    def connect(*where: object) -> tuple[object, socket.socket]:
        asked.append(where)
        return None, theirs

    with ours, theirs:
        local_connect = connecting.handing_over(ours, 5, connect)

        assert local_connect(6, "secret")[1] is theirs
        file, connection = local_connect(5, "secret")
        assert connection is ours
        file.close()
        assert local_connect(5, "secret")[1] is theirs
    assert asked == [(6, "secret"), (5, "secret")]


def test_a_socket_with_a_path_needs_no_secret(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "spark"))
        listener.listen()

        with connecting.connected(str(tmp_path / "spark"), None) as connection:
            assert connection.getpeername() == str(tmp_path / "spark")
