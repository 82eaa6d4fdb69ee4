"""The trio engine: the very nodes that run on sockets, in virtual time, in a simulated world.

It imports the heap engine and `node`.
"""
