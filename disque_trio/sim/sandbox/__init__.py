"""A simulated cluster for experiments: named operations, time that passes only on request, and a
verdict.

`operations` carries out operations, `manual_client` adds, takes and answers jobs, `plans` writes
the operations as a plan, by which `verdicts` judges, `state` reports the state, and `script`
repeats the operations. It imports the simulator, and no module about browsers. Import `Sandbox`.
"""

from disque_trio.sim.sandbox.args import OperationError
from disque_trio.sim.sandbox.sandbox import Sandbox

__all__ = ["OperationError", "Sandbox"]
