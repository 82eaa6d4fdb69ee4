"""Power cuts for real nodes: what their system calls made durable stays, and a part of the rest."""
