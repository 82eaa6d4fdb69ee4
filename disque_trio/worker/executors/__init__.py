"""Where functions of jobs run, if not in the event loop: in threads, or in processes of their own.

They take a function, its arguments and the run (`protocol.Run`), and know nothing of tasks.
"""
