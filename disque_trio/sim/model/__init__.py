"""The simulated world: network, clocks, disks, faults, and the recorder of rows.

It imports plans. All engines share it.
"""
