"""Of `disque_trio.testing.apps`."""
