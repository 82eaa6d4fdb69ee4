"""Runs apps of plans in simulated clusters: real `App`, client, handling and `Worker`, in virtual
time (docs/simulation.md, "Apps").
"""
