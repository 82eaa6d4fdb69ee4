"""An app, its handlers and the real worker in a simulated cluster, in virtual time, with faults.

docs/worker-testing.md describes the fixture `disque_sim`.
"""
