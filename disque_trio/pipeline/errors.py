"""What goes wrong with a pipeline, for people."""

from typing import Final

INSTALL: Final = "pip install 'disque-trio[spark]'"


class PipelineError(Exception):
    """Something that was asked for cannot be done: what, with which value, and what helps."""
