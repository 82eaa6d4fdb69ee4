"""Output of results, progress and errors."""

import json
import sys
from typing import Any

from rich.console import Console


def out() -> Console:
    """Where results go."""
    return Console(highlight=False, soft_wrap=True, emoji=False, markup=False)


def errors() -> Console:
    """Where progress and questions go."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True, emoji=False, markup=False)


def as_json(facts: dict[str, Any]) -> str:
    """One line."""
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
