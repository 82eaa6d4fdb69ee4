"""Instructions for each operation, as callgrind counts them, against what is recorded.

Counts hardly depend on what else the machine does, so a change of two percent is a change of the
code. They leave out the kernel, waiting and caches: `python -m benchmarks` measures those.
"""
