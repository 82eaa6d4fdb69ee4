"""The heap engine: machines on one event heap, without the tasks of a node around them.

It imports the model, the workload and plans. The other engines build on it.
"""
