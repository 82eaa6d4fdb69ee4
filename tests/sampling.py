"""Of many similar tests `make test` runs a sample, `make slow` the others."""

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def sampled(cases: Iterable[Any], every: int) -> list[ParameterSet]:
    """The cases, of which all but one in `every`, beginning with the first, are marked as slow."""
    found = []
    for turn, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        marks = () if turn % every == 0 else (pytest.mark.slow,)
        found.append(pytest.param(*values, marks=marks))
    return found
