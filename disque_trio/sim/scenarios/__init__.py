"""Scenarios, which people write, and plans, which are made of a scenario and a seed.

This package imports only values of the machine. All other parts of the simulator may import it.
"""
