"""The examples of docs/http.md give what the page shows."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from disque_trio.web.api.table import ROUTES
from disque_trio.web.problems import _CODES
from tests.cluster.processes import Fleet, free_port
from tests.trees import HOME

PAGE: Final = (HOME / "docs" / "http.md").read_text("utf-8")
EXAMPLES: Final = re.findall(
    r"^    \$ ((?:curl|printf) .*)\n((?:    [^$\n].*\n)*)", PAGE, re.MULTILINE
)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_examples_give_what_the_page_shows(tmp_path: Path) -> None:
    fleet, port = Fleet(tmp_path), free_port()
    delivery = ""
    try:
        fleet.server("--web-port", str(port))
        for line, shown in EXAMPLES:
            done = subprocess.run(
                ["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False,
                env={"API": f"http://127.0.0.1:{port}/api/v1", "DELIVERY": delivery, "PATH": _PATH},
            )  # fmt: skip
            wanted = "".join(each[4:] for each in shown.splitlines())
            pattern = re.escape(wanted).replace("…", ".*")
            assert re.fullmatch(pattern, done.stdout), (line, done.stdout, done.stderr)
            if found := re.search(r'"delivery":"([^"]*)"', done.stdout):
                delivery = found[1]
    finally:
        fleet.close()


_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"


def test_the_page_has_examples_and_names_each_kind_of_path() -> None:
    assert len(EXAMPLES) > 12
    for route in ROUTES:
        first = "/" + route.path.strip("/").split("/")[0]
        assert f"`{first}" in PAGE or f"API{first}" in PAGE, route.path


def test_the_table_of_statuses_names_the_codes_of_nodes() -> None:
    table = PAGE.partition("| status | when |")[2]
    named = set(re.findall(r"`([A-Z]+)`", table))

    explained = {"ERR", "BADID", "BADTOKEN", "NOAUTH", "WRONGPASS", "DENIED", "DUPLICATEID"}
    assert set(_CODES) - named <= explained
