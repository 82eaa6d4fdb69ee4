"""PySpark imports this module by its name: `format("disque")` works without `register()`."""

from disque_trio.pipeline.connector.source import DisqueSource as DefaultSource

__all__ = ["DefaultSource"]
