"""Jobs without a server: the state machine of a node in memory, and what runs the jobs that it has.

docs/worker-testing.md describes the fixture `disque_inline`.
"""
