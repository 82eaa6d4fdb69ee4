"""Tests outside of the simulator that fail if a directive, or a setting of a worker, is ignored."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import attrs

from disque_trio.sim.checkers.promises import DIRECTIVES, WORKER, Elsewhere
from disque_trio.statemachine import directives
from disque_trio.worker.engine.records import Settings

ROOT: Final = Path(__file__).parents[3]
PATIENCE_S: Final = 60
"""A test that waits for what does not happen has noticed, too."""
_RECORDS: Final = "disque_trio.worker.engine.records"


def _option(name: str) -> tuple[str, str, str]:
    """The module, the class and the field that has it."""
    if name in DIRECTIVES:
        return "disque_trio.statemachine.config", "Config", directives.BY_NAME[name].field
    is_of_worker = name in attrs.fields_dict(Settings)
    return _RECORDS, "Settings" if is_of_worker else "Queue", name


TESTS: Final = {
    name: row.test
    for rows in (DIRECTIVES, WORKER)
    for name, row in rows.items()
    if isinstance(row, Elsewhere)
}


def is_noticed(name: str) -> bool:
    """Does its test fail where it is ignored?"""
    with tempfile.TemporaryDirectory() as place:
        words = ", ".join(map(repr, _option(name)))
        text = f"from tests.sim.promises.forgetting import forget\nforget({words})\n"
        Path(place, "sitecustomize.py").write_text(text, encoding="utf-8")
        python = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS[name]]
        process = subprocess.Popen(
            python,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{place}{os.pathsep}{ROOT}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(PATIENCE_S) == 1
        except subprocess.TimeoutExpired:
            return True
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
