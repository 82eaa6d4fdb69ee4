"""Simulate clusters of the real node under partitions, message loss, crashes and clock drift.

A run depends only on a plan and a seed. Nothing reads a clock, draws from a global random source,
or depends on the order of a set (docs/simulation.md). "A new kind of fault" in CONTRIBUTING.md
lists the files that a new fault changes.
"""
