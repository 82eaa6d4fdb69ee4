"""docs/metrics.md tells what the node tells."""

import subprocess
import sys

from disque_trio.web.families import FAMILIES
from tests.trees import HOME

DOCUMENT = HOME / "docs" / "metrics.md"


def test_the_table_has_every_metric_as_it_is() -> None:
    text = DOCUMENT.read_text().partition("## The metrics")[2]
    rows = [line for line in text.splitlines() if line.startswith("| `")]

    assert rows == [
        f"| `{family.name}` | {family.kind} | {', '.join(family.labels)} | {family.says} |"
        for family in FAMILIES
    ]


def test_a_node_without_a_web_port_loads_nothing_of_it() -> None:
    script = (
        "import sys, disque_trio.serving.server, disque_trio.serving.up;"
        "sys.exit(bool({'h11', 'prometheus_client', 'disque_trio.web.site'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)

    assert done.returncode == 0, done
