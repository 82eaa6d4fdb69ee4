"""Executors run functions of jobs outside of the event loop: in threads, or in processes.

They receive a function, its arguments and the run (`protocol.Run`), and are independent of tasks.
"""
