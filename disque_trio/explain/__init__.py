"""Explains which failures a job survives, by two independent means: rules, and simulated trials.

Pure functions of options and facts. `disque-trio explain` reads the facts and runs the trials.
"""
