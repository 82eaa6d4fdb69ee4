"""Lines of the state machine that its tests run, for `coverage report`.

SlipCover instruments the code, and removes what has reported a line. So the tests take less than
half as long again; under a tracer, which sees every line each time, they take two to three times as
long. Load this plugin by `-p`, before anything imports the state machine.
"""

from pathlib import Path
from typing import Final

import pytest
import slipcover
from coverage import CoverageData

SOURCE: Final = Path(__file__).parent.parent / "disque_trio" / "statemachine"

_lines = slipcover.Slipcover(source=[str(SOURCE)])
slipcover.ImportManager(_lines, slipcover.FileMatcher(sources=[SOURCE])).__enter__()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write the lines to the data file of coverage."""
    data = CoverageData()
    data.erase()
    found = _lines.get_coverage()["files"].items()
    data.add_lines({str(Path(path).resolve()): each["executed_lines"] for path, each in found})
    data.write()
