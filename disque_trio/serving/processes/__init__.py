"""Many cores: several processes of one machine, each a node, behind one port (docs/deploying.md).

Any node of a cluster serves any client, so the processes need no protocol but the bus. `plan` makes
their configurations, `supervisor` runs in the parent process and keeps them running, `worker` is
one of them.
"""
