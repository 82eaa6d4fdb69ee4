"""Engines that run plans: `heap` (whole nodes), `trio` (each node a task in virtual time), `tcp`
(processes).

This package contains what they share. The command line imports the `run` of each.
"""
