"""Benchmarks against other servers in one run, `python -m benchmarks`, and others."""
