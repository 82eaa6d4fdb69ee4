"""What a Disque node does, as a pure state machine: no I/O, no clock, no randomness of its own.

docs/design.md follows a request and a late worker through the modules; `due` says which module
handles each timer.
"""
