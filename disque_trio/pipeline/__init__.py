"""Work for Spark: sweeps, the lake of traces, queues as streams.

Needs the extra `spark` (docs/pipeline.md). PySpark is imported only when it is used, by
`session.start`.
"""
