"""Queues as tables and streams of Spark: `format("disque")` (docs/pipeline-connector.md).

`source.register` makes it known to a session. Only `source`, `stream`, `scan`, `sink` and `columns`
need PySpark; options, nodes, leases and offsets are plain Python.
"""
