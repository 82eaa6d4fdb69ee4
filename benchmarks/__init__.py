"""Ops/s beside other servers, measured in one run: `python -m benchmarks`."""
