"""Errors of the pipeline, with texts for the user."""

from typing import Final

INSTALL: Final = "pip install 'disque-trio[spark]'"


class PipelineError(Exception):
    """A request that cannot be done: what failed, with which value, and what helps."""
