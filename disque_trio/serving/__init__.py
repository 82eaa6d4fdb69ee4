"""The process around a node: configuration, signals, logs, systemd, several processes on a port.

It may import all that a node is made of. Only the command line imports it.
"""
