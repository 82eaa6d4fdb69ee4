"""Flows: jobs that are added when others are done (decision 145).

`building` is the producer's part, `coordinator` the task that adds the members, `graph` the state
of the members, and `handles` the interface to an added flow.
"""
