"""A transactional outbox: jobs are rows in the transaction of the user, and a relay adds them.

A job is added if and only if the transaction is committed. `relay` is independent of the database;
`sqlalchemy` and `django` are the interfaces for programs. Source: docs/worker-outbox.md.
"""
