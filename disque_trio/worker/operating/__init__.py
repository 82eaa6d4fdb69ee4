"""Workers tell where they are and obey orders, by jobs in reserved queues (docs/operating.md).

`registry` is the worker's side. `admin` is that of people and programs who look after workers.
"""
