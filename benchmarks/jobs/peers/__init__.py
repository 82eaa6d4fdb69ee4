"""A module for each worker library, which runs in that library's environment.

These modules import nothing but the standard library, that library, and `benchmarks.jobs.tally` and
`benchmarks.jobs.handlers`.
"""
