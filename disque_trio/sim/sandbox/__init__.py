"""A simulated cluster for a person to break: deeds by name, time that passes only when it is told
to, and a verdict.

`deeds` reads what a person wants and does it, `hands` adds, takes and answers jobs, `plans` writes
what was done as a plan, by which `verdicts` judges, `state` tells how things are, and `script`
repeats it. It imports the simulator, and knows nothing of browsers. Import `Sandbox`.
"""

from disque_trio.sim.sandbox.args import DeedError
from disque_trio.sim.sandbox.box import Sandbox

__all__ = ["DeedError", "Sandbox"]
