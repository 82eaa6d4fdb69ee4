"""go-redis and redigo, as Debian has them: the Go modules of today cannot be had everywhere."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.processes import Server

_MODULES: Final = Path("/usr/share/gocode")
_NEEDED: Final = [
    _MODULES / "src" / name for name in ("gopkg.in/redis.v5", "github.com/gomodule/redigo")
]
pytestmark = pytest.mark.skipif(
    shutil.which("go") is None or not all(path.is_dir() for path in _NEEDED),
    reason="Debian's golang-go, golang-gopkg-redis.v5-dev and golang-github-gomodule-redigo-dev"
    " are not installed",
)


@pytest.fixture(scope="module")
def said(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the program says, by the name of the step."""
    home = tmp_path_factory.mktemp("go")
    program = Path(__file__).parent / "golang" / "main.go"
    done = subprocess.run(
        ["go", "run", str(program), str(server.port)],
        env=os.environ
        | {"GO111MODULE": "off", "GOPATH": str(_MODULES), "GOCACHE": str(home), "GOFLAGS": ""},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=280,
    )
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("client", ["go-redis", "redigo"])
def test_a_job_goes_round_and_nothing_of_a_transaction_is_executed(
    said: dict[str, str], client: str
) -> None:
    assert said[f"{client}:add"] == "false"
    assert said[f"{client}:get"] == "1"
    assert "MULTI" in said[f"{client}:multi"]
    assert said[f"{client}:left"] == "0"
