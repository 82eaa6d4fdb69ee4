"""Where the data lie that were recorded from original servers: beside the clone, not in it."""

import os
from pathlib import Path
from typing import Final

import pytest

CONFORMANCE: Final = Path(__file__).parents[2] / "shared" / "conformance"

needs_conformance = pytest.mark.skipif(
    not CONFORMANCE.is_dir() and not os.environ.get("CI"),
    reason="the recorded data are not beside this clone",
)
"""For people whose clone stands alone. In CI their absence is a failure."""
