"""Flows: jobs that are added when others are done (decision 145).

`building` is the producer's part, `coordinator` the task that adds the members, `graph` what it
knows of them, `handles` what has become of a flow.
"""
