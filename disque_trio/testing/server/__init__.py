"""Real nodes on loopback for a test: the process that they run in, and its end.

docs/worker-testing.md describes the fixture `disque_server`.
"""
