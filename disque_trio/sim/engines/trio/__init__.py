"""The trio engine: nodes in Trio tasks, in virtual time, in a simulated world.

It imports the heap engine and `node`.
"""
