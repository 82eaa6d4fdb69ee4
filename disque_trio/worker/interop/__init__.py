"""Bodies of other systems, Sidekiq and Resque: read for tasks of an app, and written for their
workers.

`payloads` reads and writes the bodies, `producer` adds the jobs.
"""

from typing import Literal

System = Literal["resque", "sidekiq"]
