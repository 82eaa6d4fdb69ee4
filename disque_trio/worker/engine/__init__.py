"""The engine of a worker, a pure state machine: events with their times are inputs, effects are
outputs.

It takes jobs, starts them, keeps their leases, and reports their outcomes to nodes. It opens no
connections and reads no clock: a driver or the simulator does. Other modules import only `engine`
and the records of `records`.
"""
