"""A Python script that repeats the operations of a sandbox."""

from disque_trio.sim.picture.plan_words import duration
from disque_trio.sim.sandbox.sandbox import FINISH, Sandbox

_HEAD = '''\
"""Repeats a sandbox of disque-trio: the same operations at the same times, the same digest."""

{imports}
box = Sandbox({made})
'''
_OURS = "from disque_trio.sim.sandbox import Sandbox\n"
_SOURCES = "from disque_trio.cli.sim.sources import plan_from\n"


def script(box: Sandbox, path: str = "") -> str:
    """Return the script. `path` is the file of the scenario or plan, if there is one."""
    plan = box.sim.plan
    made = f"nodes={plan.nodes}, seed={plan.seed}"
    if not box.is_by_hand:
        seed = plan.seed if path.endswith(".toml") else None
        made = f"plan_from({path!r}, {seed})"
    imports = _OURS if box.is_by_hand else _SOURCES + _OURS
    lines = [_HEAD.format(imports=imports, made=made)]
    for each in box.done:
        lines.append(f"box.run_to({each.at})  # {duration(each.at)}: {_on_a_line(each.words)}\n")
        if each.name == FINISH:
            lines.append("box.play(box.finishing())\n")
        else:
            arguments = "".join(f", {name}={value!r}" for name, value in each.args.items())
            lines.append(f"box.do({each.name!r}{arguments})\n")
    if not box.is_finishing:
        lines.append(f"box.run_to({box.now})\n")
    return "".join([*lines, f"\nassert box.digest == {box.digest!r}\n"])


def _on_a_line(words: str) -> str:
    """Return the words in one line: names of queues may contain characters that would end the
    comment."""
    return "".join(each if each.isprintable() else "�" for each in words)
