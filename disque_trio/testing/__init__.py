"""Tools for tests of this project and of yours: simulated clusters, and fixtures for users of the
worker library.

`plans` draws whole plans, which `verdict_of` runs and checks. `ClusterStateMachine` is a Hypothesis
state machine that controls a cluster step by step: subclass it, add your own rules, and run its
`TestCase`. Both need Hypothesis (``pip install 'disque-trio[testing]'``); see docs/simulation.md,
"Your own tests". `plugin` has the fixtures (docs/worker-testing.md).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from disque_trio import exported

if TYPE_CHECKING:
    from disque_trio.sim.checkers.verdict import Judge as Judge
    from disque_trio.sim.checkers.verdict import Verdict as Verdict
    from disque_trio.sim.checkers.verdict import judge as judge
    from disque_trio.sim.fault_controls import ActiveFault as ActiveFault
    from disque_trio.sim.fault_controls import Trouble as Trouble
    from disque_trio.sim.scenarios.plan import Add as Add
    from disque_trio.sim.scenarios.plan import ClockPlan as ClockPlan
    from disque_trio.sim.scenarios.plan import Consumer as Consumer
    from disque_trio.sim.scenarios.plan import Expect as Expect
    from disque_trio.sim.scenarios.plan import Fault as Fault
    from disque_trio.sim.scenarios.plan import Micros as Micros
    from disque_trio.sim.scenarios.plan import Plan as Plan
    from disque_trio.sim.steering import Simulation as Simulation
    from disque_trio.statemachine.messages import MESSAGES as MESSAGES
    from disque_trio.testing.drawing import ALLOWED as ALLOWED
    from disque_trio.testing.drawing import MILLI as MILLI
    from disque_trio.testing.drawing import SECOND as SECOND
    from disque_trio.testing.drawing import WAYS as WAYS
    from disque_trio.testing.drawing import clock_plans as clock_plans
    from disque_trio.testing.drawing import durations as durations
    from disque_trio.testing.drawing import faults as faults
    from disque_trio.testing.drawing import job_options as job_options
    from disque_trio.testing.drawing import plans as plans
    from disque_trio.testing.drawing import verdict_of as verdict_of
    from disque_trio.testing.simulated.chaos import chaos as chaos
    from disque_trio.testing.stateful import ClusterStateMachine as ClusterStateMachine

_PLAN: Final = "Add ClockPlan Consumer Expect Fault Micros Plan"
_DRAWING: Final = (
    "ALLOWED MESSAGES MILLI SECOND WAYS clock_plans durations faults job_options plans verdict_of"
)
_HOMES: Final = {
    **dict.fromkeys(_PLAN.split(), "..sim.scenarios.plan"),
    **dict.fromkeys(("Judge", "Verdict", "judge"), "..sim.checkers.verdict"),
    "Simulation": "..sim.steering",
    **dict.fromkeys(("ActiveFault", "Trouble"), "..sim.fault_controls"),
    **dict.fromkeys(_DRAWING.split(), ".drawing"),
    "ClusterStateMachine": ".stateful",
    "chaos": ".simulated.chaos",
}

# Every run of pytest imports the plugin, and most runs do not need these names.
if not TYPE_CHECKING:  # type checkers would take any name for an existing one
    __all__, _get, __dir__ = exported(__name__, _HOMES)

    def __getattr__(name: str) -> Any:
        with import_module("disque_trio.extras").needed(__name__, "testing"):
            return _get(name)
