"""What a Disque node does, as a pure state machine: no I/O, no clock, no randomness of its own."""
