"""docs/metrics.md, the alerts and the dashboard know the metrics as they are."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from disque_trio.web.metrics import FAMILIES, HISTOGRAM
from tests.trees import HOME

DOCUMENT = HOME / "docs" / "metrics.md"
RULES = HOME / "deploy" / "prometheus" / "disque.rules.yml"
DASHBOARD = HOME / "deploy" / "grafana" / "disque.json"
LABELS = {family.name: set(family.labels) for family in FAMILIES} | {
    f"{family.name}_bucket": {*family.labels, "le"}
    for family in FAMILIES
    if family.kind == HISTOGRAM
}
OF_PROMETHEUS = {"instance", "job"}
"""Labels that it adds."""
WORDS = {"and", "by", "count", "count_values", "delta", "histogram_quantile", "increase",
         "label_values", "le", "max", "on", "or", "rate", "sum", "time", "unless",
         "up"}  # fmt: skip
"""Of PromQL, in what the alerts and the dashboard ask."""


def rules() -> list[str]:
    text = RULES.read_text()
    return re.findall(r"expr: >-\n +(.+)\n", text)


def graphs() -> Iterator[str]:
    board: dict[str, Any] = json.loads(DASHBOARD.read_text())
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]


EXPRESSIONS = [*rules(), *graphs()]


def section(title: str) -> list[str]:
    """The rows of the table under a heading."""
    text = DOCUMENT.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [line for line in text.splitlines() if line.startswith("| `")]


def test_the_table_has_every_metric_as_it_is() -> None:
    assert section("The metrics") == [
        f"| `{family.name}` | {family.kind} | {', '.join(family.labels)} | {family.about} |"
        for family in FAMILIES
    ]


def test_there_are_rules_and_graphs() -> None:
    assert len(rules()) == RULES.read_text().count("alert:") > 10
    assert len(list(graphs())) > 20


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_alerts_and_graphs_ask_for_what_there_is(expression: str) -> None:
    allowed = set(OF_PROMETHEUS)
    bare = re.sub(r'"[^"]*"|\[[^]]*\]', "", expression)
    words = set(re.findall(r"[a-zA-Z_]\w*", bare)) - WORDS
    for name in words & LABELS.keys():
        allowed |= LABELS[name]
    assert words <= LABELS.keys() | allowed
    inside = " ".join(re.findall(r"\{([^}]*)\}", expression))
    asked = re.findall(r'(\w+) *(?:=~|!~|!=|=)"', re.sub(r'"[^"]*"', '""', inside))
    summed = [
        word for words in re.findall(r"by \(([^)]*)\)", expression) for word in words.split(", ")
    ]
    assert {*asked, *summed} <= allowed


def test_each_alert_says_what_to_do() -> None:
    alerts = re.findall(r"alert: (\w+)", RULES.read_text())

    assert [row.split("`")[1] for row in section("Alerts")] == alerts


def test_a_node_without_a_web_port_loads_nothing_of_it() -> None:
    script = (
        "import sys, disque_trio.serving.server, disque_trio.serving.up;"
        "sys.exit(bool({'h11', 'prometheus_client', 'trio_websocket', 'disque_trio.web.site',"
        " 'disque_trio.observe'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)

    assert done.returncode == 0, done
