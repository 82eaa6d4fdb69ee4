"""The constants of nodes that a seed makes small, and their values."""

from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.scenario import ClusterSpec
from disque_trio.statemachine.knobs import KNOBS


def knob_values(cluster: ClusterSpec, seed: int) -> tuple[tuple[str, int], ...]:
    """Return the constants of this seed. Each has a stream of its own; every order of magnitude is
    equally likely."""
    values = dict(cluster.knobs)
    share = cluster.small.draw(stream(seed, "knobs"))
    for knob in KNOBS if share else ():
        rng = stream(seed, "knob", knob.name)
        if knob.name not in values and rng.random() < share:
            low = max(knob.least, 1)
            drawn = int(low * (knob.default / low) ** rng.random())
            values[knob.name] = drawn if rng.random() < 0.7 else knob.least
    return tuple(values.items())
