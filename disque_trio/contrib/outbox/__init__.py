"""A transactional outbox: jobs are rows in the transaction of the user, and a relay adds them.

So a job is added if, and only if, the transaction is committed. `relay` is what both kinds of
databases share; `sqlalchemy` and `django` are for programs. Source: docs/worker-outbox.md.
"""
