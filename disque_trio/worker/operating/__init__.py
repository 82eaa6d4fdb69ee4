"""Workers publish heartbeats and receive orders, by jobs in reserved queues (docs/operating.md).

`registry` is the worker's side. `admin` is the side of operators and programs that manage workers.
"""
