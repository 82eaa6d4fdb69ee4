"""The heap engine: machines on one event heap, without the tasks of whole nodes.

It imports the model, the workload and plans. The other engines build on it.
"""
