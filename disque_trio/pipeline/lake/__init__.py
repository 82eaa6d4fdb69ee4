"""The lake: traces of simulations and of live nodes, as tables (docs/pipeline-lake.md).

`store` has its commits, `shape` its tables. `ingestion` adds files, `compaction`
merges small ones; `views` and `checks` are SQL views, and `asking` makes them known to Spark.
"""
