"""The trace lake: what happened in simulations and on live nodes, as tables (docs/pipeline.md).

`store` is the folder and its commits, `shape` its tables. `ingestion` fills it, `compaction` tidies
it up; `views` and `checks` are what can be asked of it, `asking` asks.
"""
