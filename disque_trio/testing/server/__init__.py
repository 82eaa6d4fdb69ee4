"""Real nodes on loopback for a test, in a separate process.

docs/worker-testing.md describes the fixture `disque_server`.
"""
