"""A Disque node as a pure state machine: no I/O, no clock, no randomness of its own.

docs/design.md follows a request and a late worker through the modules; `timer_dispatch` maps each
timer to its module.
"""
