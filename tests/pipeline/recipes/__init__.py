"""The recipes of docs/pipeline-recipes.md, whose files are in examples/pipeline."""

from pathlib import Path
from typing import Final

HOME: Final = Path("examples/pipeline").absolute()
