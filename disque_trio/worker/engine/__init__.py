"""What a worker does, as a pure machine: events with their time go in, effects come out.

It takes jobs, starts them, keeps their leases, and tells nodes how they ended. It opens no
connection and reads no clock: a driver does, or the simulator. Only `engine` is imported from
outside, and the records of `records`.
"""
