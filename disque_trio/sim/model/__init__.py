"""The simulated world: network, clocks, disks, faults, and the recorder of what happens.

It imports plans. All engines share it.
"""
