"""The worker library. `engine` decides what a worker does; it performs no I/O.

The engine imports only the words of the state machine. docs/worker-engine.md describes it.
"""
