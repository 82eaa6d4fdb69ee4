"""Jobs without a server: the state machine of a node in memory, and a runner of its jobs.

docs/worker-testing.md describes the fixture `disque_inline`.
"""
