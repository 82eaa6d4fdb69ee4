"""What examples/pipeline/nightly.py needs of Airflow, where that is not installed."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from graphlib import TopologicalSorter
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import attrs
import pytest

from tests.pipeline.recipes import HOME


@attrs.define(eq=False, kw_only=True)
class Task:
    """A BashOperator."""

    task_id: str
    bash_command: str
    trigger_rule: str
    retries: int
    retry_delay: object
    append_env: bool
    before: list["Task"] = attrs.field(factory=list)

    def set_upstream(self, others: Sequence["Task"]) -> None:
        """These run before."""
        self.before += others

    def set_downstream(self, others: Sequence["Task"]) -> None:
        """These run after."""
        for other in others:
            other.before.append(self)

    def run(self, params: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
        """As an Airflow worker does it."""
        command = self.bash_command
        for name, value in params.items():
            command = command.replace(f"{{{{ params.{name} }}}}", value)
        assert "{{" not in command
        return subprocess.run(
            ["bash", "-c", command], check=False, capture_output=True, text=True, timeout=300
        )


@contextmanager
def _dag(name: str, **options: Any) -> Iterator[None]:
    yield


def tasks() -> list[Task]:
    """The tasks of the DAG, in an order in which Airflow may run them."""
    made: list[Task] = []

    def operator(**options: Any) -> Task:
        made.append(Task(**options))
        return made[-1]

    modules: dict[str, dict[str, Any]] = {
        "airflow.sdk": {"DAG": _dag, "Param": lambda value, **_: value},
        "airflow.providers.standard.operators.bash": {"BashOperator": operator},
    }
    spec = spec_from_file_location("nightly", HOME / "nightly.py")
    assert spec is not None
    assert spec.loader is not None
    with pytest.MonkeyPatch.context() as patch:
        for name, members in modules.items():
            module = ModuleType(name)
            vars(module).update(members)
            patch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module_from_spec(spec))
    return list(TopologicalSorter({each: each.before for each in made}).static_order())
