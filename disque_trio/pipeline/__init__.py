"""What outgrows one machine, on Spark: sweeps, the lake of traces, queues as streams.

Needs the extra `spark` (docs/pipeline.md). Nothing here imports PySpark before it is asked for:
`session.start` does.
"""
