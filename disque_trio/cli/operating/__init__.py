"""Looks after workers, jobs and queues of a whole cluster (docs/operating.md).

`frame` is the common part. Each other module is a family of commands, such as
`disque-trio workers`.
"""
