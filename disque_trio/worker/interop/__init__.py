"""Bodies of other systems, Sidekiq and Resque: read for tasks of an app, and written for theirs.

`payloads` knows their shapes, `producer` adds their jobs.
"""

from typing import Literal

System = Literal["resque", "sidekiq"]
