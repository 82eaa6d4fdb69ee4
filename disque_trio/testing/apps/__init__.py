"""Runs apps of plans in simulated clusters: the real `App`, client, handler and `Worker`, in
virtual time (docs/simulation.md, "Apps")."""
