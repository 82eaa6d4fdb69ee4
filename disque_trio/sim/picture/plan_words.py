"""Describes a plan in words, for readers who do not know the scenario."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from disque_trio.sim.scenarios.plan import Add, Consumer, Fault, Latency, Micros, Plan, Span
from disque_trio.statemachine import joboptions
from disque_trio.terminal.counting import counted

LINKS_MOST = 6
LIVE = "live"
"""The scenario name of traces of live clusters."""


def duration(time: Micros) -> str:
    """Return the duration as text: 1.5 s, 20 ms, 500 µs."""
    if time >= 1_000_000:
        return f"{time / 1_000_000:g} s"
    return f"{time / 1000:g} ms" if time >= 1000 else f"{time} µs"


def span(times: Span) -> str:
    """Return a range of durations as text."""
    low, high = times
    return duration(low) if low == high else f"{duration(low)} to {duration(high)}"


def by_number(name: str) -> tuple[int, str]:
    """Return a sort key that puts n2 before n10."""
    digits = name.lstrip("abcdefghijklmnopqrstuvwxyz-_.")
    return (int(digits) if digits.isdecimal() else 0, name)


def nodes(names: Iterable[str]) -> str:
    """Return names of nodes; three or more in sequence as a range: `n1 n3–n5`."""
    runs: list[list[str]] = []
    for name in sorted(names, key=by_number):
        if runs and by_number(name)[0] == by_number(runs[-1][-1])[0] + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return " ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else " ".join(run) for run in runs)


def replay(plan: Plan) -> str:
    """Return the command that repeats the run."""
    is_path = "/" in plan.scenario or plan.scenario.endswith(".toml")
    path = plan.scenario if is_path else f"scenarios/{plan.scenario}.toml"
    return f"disque-trio sim run {path} --seed {plan.seed}"


def in_words(plan: Plan) -> list[tuple[str, str]]:
    """Return the plan as short paragraphs with headings."""
    if plan.scenario == LIVE:
        return [("Cluster", f"{_many(plan.nodes, 'node')}, live")]
    return [
        ("Cluster", _cluster(plan)),
        ("Work", _work(plan)),
        ("Faults", _faults(plan)),
        ("End", _end(plan)),
    ]


def _cluster(plan: Plan) -> str:
    words = [
        f"{counted(plan.nodes, 'node')} on {plan.link.model} links, {_latency(plan.link.latency)}"
    ]
    chances = (
        ("lost", plan.link.drop),
        ("duplicated", plan.link.duplicate),
        ("reordered", plan.link.reorder),
    )
    words += [f"{chance:.2%} of messages {what}" for what, chance in chances if chance]
    if plan.link.bytes_per_second:
        words.append(f"{plan.link.bytes_per_second} bytes/s")
    for number, clock in enumerate(plan.clocks, 1):
        if clock.drift_ppm:
            words.append(f"n{number} drifts {clock.drift_ppm:+d} ppm")
        if clock.wall_offset_ms:
            words.append(f"n{number}'s wall clock is off by {clock.wall_offset_ms:+d} ms")
    if plan.link.batches:
        words.append("messages of one moment arrive as one batch")
    words += [f"{name} {value}" for name, value in (*plan.config, *plan.knobs)]
    for number, lives in enumerate(plan.versions, 1):
        words.append(f"n{number} of version {', then '.join(lives)}")
    return "; ".join(words)


def _latency(latency: Latency) -> str:
    fast = span(latency.fast)
    return f"{fast} ({latency.p_slow:.2%} take {span(latency.slow)})" if latency.p_slow else fast


def _work(plan: Plan) -> str:
    if not plan.adds and not plan.consumers:
        return "no clients"
    return "; ".join((*_adds(plan.adds), *_consumers(plan.consumers)))


def _adds(adds: Sequence[Add]) -> list[str]:
    if not adds:
        return ["no jobs are added"]
    first, last = min(add.at for add in adds), max(add.at for add in adds)
    producers = len(Counter(add.producer for add in adds))
    queues = ", ".join(sorted(Counter(add.queue for add in adds)))
    kinds = Counter(_options(add) for add in adds).most_common()
    shown = ", ".join(f"{count} × {options or 'as default'}" for options, count in kinds[:3])
    more = f", {counted(len(kinds) - 3, 'other kind')}" if len(kinds) > 3 else ""
    when = f"between {duration(first)} and {duration(last)}"
    jobs = f"{_many(len(adds), 'job')} from {_many(producers, 'producer')}"
    return [f"{jobs} {when}, to {queues}: {shown}{more}"]


def _options(add: Add) -> str:
    return " ".join(
        _option(option, value) for option, value in joboptions.option_values(add.options)
    )


def _option(option: joboptions.Option, value: Any) -> str:
    if not option.usage or option.is_text:
        return option.text
    return f"{option.text} {joboptions.decimals(value) if option.is_time else value}"


def _consumers(consumers: Sequence[Consumer]) -> list[str]:
    kinds = Counter((consumer.work, consumer.mix) for consumer in consumers).most_common()
    lines = [
        f"{_many(count, 'consumer')} working {span(work)}, then {_mix(mix)}"
        for (work, mix), count in kinds[:3]
    ]
    return (
        [*lines, f"{counted(len(kinds) - 3, 'other kind')} of consumer"]
        if len(kinds) > 3
        else lines
    )


def _mix(mix: tuple[tuple[str, float], ...]) -> str:
    total = sum(weight for _, weight in mix) or 1.0
    if len(mix) == 1:
        return mix[0][0]
    return ", ".join(f"{name} {weight / total:.0%}" for name, weight in mix if weight)


def _faults(plan: Plan) -> str:
    if not plan.faults:
        return "none"
    if len(plan.faults) <= 4:
        return "; ".join(fault_in_words(fault) for fault in plan.faults)
    return ", ".join(
        _many(count, kind)
        for kind, count in Counter(fault.kind for fault in plan.faults).most_common()
    )


def fault_in_words(fault: Fault) -> str:
    """Return a fault in words: its kind, target, time and duration."""
    words = [fault.kind]
    words += [" | ".join(nodes(f"n{node}" for node in group) for group in fault.groups)]
    words += [_links(fault.links), nodes(f"n{node}" for node in fault.nodes) or fault.target]
    words += [fault.mode, f"by {fault.amount}" if fault.amount else ""]
    words += [f"upon {fault.when} number {fault.nth}" if fault.when else f"at {duration(fault.at)}"]
    words += [f"for {duration(fault.hold)}" if fault.hold else ""]
    return " ".join(word for word in words if word)


def _links(links: Sequence[tuple[int, int]]) -> str:
    shown = ", ".join(f"n{node}→n{peer}" for node, peer in links[:LINKS_MOST])
    return f"{shown} and {len(links) - LINKS_MOST} more" if len(links) > LINKS_MOST else shown


def _end(plan: Plan) -> str:
    drain = f", then {duration(plan.drain)} to drain" if plan.drain else ""
    return f"chaos until {duration(plan.chaos)}, {plan.heal} heal{drain}"


def _many(count: int, what: str) -> str:
    ending = "" if count == 1 else "es" if what.endswith("sh") else "s"
    return f"{count} {what}{ending}"
