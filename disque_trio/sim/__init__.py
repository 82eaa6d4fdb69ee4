"""The simulator: the same node through partitions, losses, crashes and drifting clocks.

Everything here is a function of a plan and a seed. Nothing reads a clock, draws from a global
random source, or depends on the order of a set (docs/simulation.md). "A new kind of fault" in
CONTRIBUTING.md lists the files that a new fault goes through.
"""
