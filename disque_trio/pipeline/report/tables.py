"""Parts of the report that are tables: failures, duplicates, coverage, cost."""

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from disque_trio.pipeline.report.facts import ReportFacts
from disque_trio.pipeline.report.markup import section, shade, short, table
from disque_trio.pipeline.report.sweeps import FAMILIES, NO_FAULT, Facts
from disque_trio.sim.checkers.duplicates import CAUSES, UNAVOIDABLE
from disque_trio.sim.checkers.properties import APP_PROPERTIES, PROPERTIES
from disque_trio.sim.scenarios.vocabulary import MESSAGES
from disque_trio.terminal.counting import counted

Rerun = Callable[[str, int, str], str]
"""The command that runs a seed of a scenario in a version again; empty if there is none."""
_LISTED_MOST: Final = 40
_STATES: Final = ("unknown", "held", "queued", "acked")
_ABOUT_JOBS: Final = tuple(
    name
    for name in MESSAGES
    if name not in {"ping", "pong", "meet", "fail", "needjobs", "pause", "waiting", "havejobs"}
)
_COLOURS: Final = (
    "Blue: unavoidable, or requested by a client. Orange: a better queue would avoid it. "
    "Red: unexplained."
)


def failures(facts: ReportFacts, rerun: Rerun) -> str:
    """What was violated, and how to see it again."""
    if not facts.seeds:
        return ""
    if not facts.failures:
        return section("Failures by property", "No seed has violated any property.", "")
    firsts = table(
        "failures by property",
        (
            "property", "text:which says", "scenario", "code", "number:seeds", "number:first",
            "text:the finding of the checker", "text:run it again",
        ),
        (_failure(row, rerun) for row in facts.failures[:_LISTED_MOST]),
    )  # fmt: skip
    more = len(facts.failures) - _LISTED_MOST
    rest = f" {more} with fewer seeds are left out." if more > 0 else ""
    return section(
        "Failures by property",
        f"How many seeds violated each property, with the first seed of each scenario.{rest}",
        firsts,
    )


def _failure(row: Facts, rerun: Rerun) -> list[str]:
    return [
        html.escape(row["property"]),
        html.escape(_meaning(row["property"])),
        html.escape(row["scenario"]),
        f"<code>{html.escape((row['commit'] or '')[:10])}</code>",
        f"{row['seeds']:,}",
        str(row["seed"]),
        html.escape(row["text"] or ""),
        _command(rerun(row["scenario"], row["seed"], row["version"] or "")),
    ]


def missed(facts: ReportFacts) -> str:
    """Marks that no seed has hit."""
    if not facts.missed:
        return ""
    return section(
        "Not seen",
        "Marks that a scenario expects of some seed, and that no seed of its latest version has "
        "hit. With few seeds that is usual; with many the scenario tests less than it should.",
        table(
            "marks that no seed has hit",
            ("scenario", "number:seeds", "text:marks"),
            (
                [html.escape(scenario), f"{seeds:,}", html.escape(", ".join(marks))]
                for scenario, seeds, marks in facts.missed
            ),
        ),
    )


def _meaning(name: str) -> str:
    return PROPERTIES.get(name) or APP_PROPERTIES.get(name) or CAUSES.get(name, "")


def _command(command: str) -> str:
    words = " ".join(f"<span>{html.escape(word)}</span>" for word in command.split(" "))
    return f'<code class="command">{words}</code>' if command else "–"


def violations(facts: ReportFacts) -> str:
    """What the judge finds in traces that no sweep has judged."""
    if not facts.violations:
        return ""
    return section(
        "Violations in ingested traces",
        "What the judge finds in runs that no sweep in this lake has run.",
        table(
            "violations in traces",
            (
                "property",
                "scenario",
                "number:runs",
                "number:times",
                "number:seed",
                "text:the first",
            ),
            (
                [
                    html.escape(row["property"]),
                    html.escape(row["scenario"]),
                    *(f"{row[name]:,}" for name in ("runs", "times")),
                    str(row["seed"]),
                    html.escape(row["text"]),
                ]
                for row in facts.violations
            ),
        ),
    )


# Duplicates.


def duplicates(facts: ReportFacts) -> str:
    """By scenario and cause, and by kind of fault and cause."""
    if not facts.causes:
        return ""
    by_scenario = {(row["scenario"], row["cause"]): row["per_million"] or 0 for row in facts.causes}
    by_family = {(row["family"], row["cause"]): row["per_million"] or 0 for row in facts.families}
    causes = _causes({**by_scenario, **by_family})
    meanings = "; ".join(f"{cause} {CAUSES[cause]}" for cause in causes)
    whole = section(
        "Duplicates per million jobs, by cause",
        f"{_COLOURS} {html.escape(meanings)}.",
        _rates("scenario", sorted({name for name, _ in by_scenario}), by_scenario, causes),
    )
    if not facts.families:
        return whole
    seeds = {row["family"]: f"{row['seeds']:,}" for row in facts.families}
    order = [name for name in (*FAMILIES, NO_FAULT) if name in seeds]
    return whole + section(
        "Duplicates per million jobs, by kind of fault",
        "The same over the jobs of all seeds in which a fault of the kind occurred. Most seeds "
        "have faults of several kinds, and count for each of them.",
        _rates("fault", order, by_family, causes, seeds),
    )


def _causes(found: Mapping[tuple[str, str], float]) -> list[str]:
    there = {cause for _, cause in found}
    return [cause for cause in CAUSES if cause in there]


def _rates(
    what: str,
    names: Sequence[str],
    found: Mapping[tuple[str, str], float],
    causes: Sequence[str],
    seeds: Mapping[str, str] | None = None,
) -> str:
    largest = max(found.values(), default=0)
    extra = ["number:seeds"] if seeds else []
    rows = [
        [
            html.escape(name),
            *([seeds[name]] if seeds else []),
            *(_rate(found.get((name, cause), 0), largest, cause) for cause in causes),
        ]
        for name in names
    ]
    columns = [what, *extra, *(f"number:{cause}" for cause in causes)]
    return table(f"duplicates by {what} and cause", columns, rows, "heat")


def _rate(value: float, largest: float, cause: str) -> str:
    if not value:
        return '<td class="none">·</td>'
    hue = "dx" if cause == "DX" else "accent" if cause in UNAVOIDABLE else "d4"
    shown = f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
    return f'<td style="{shade(value, largest, hue)}">{shown}</td>'


# Coverage.


def coverage(facts: ReportFacts) -> str:
    """Which message met which state of its job."""
    if not facts.coverage:
        return ""
    found = {(row["message"], row["state"]): row["times"] for row in facts.coverage}
    largest = max(found.values())
    states = [*_STATES, *sorted({state for _, state in found} - set(_STATES))]
    messages = [*_ABOUT_JOBS, *sorted({message for message, _ in found} - set(_ABOUT_JOBS))]
    hit = sum(1 for value in found.values() if value)
    return section(
        "Coverage",
        "How often each message about a job arrived at a node, by the state of the job there. "
        f"{counted(hit, 'pair')} occurred; the striped ones never did.",
        table(
            "arrivals by message and state",
            ("message", *(f"number:{html.escape(state)}" for state in states)),
            (
                [
                    html.escape(message.upper()),
                    *(_cell(found.get((message, state), 0), largest) for state in states),
                ]
                for message in messages
            ),
            "heat",
        ),
    )


def _cell(value: int, largest: int) -> str:
    if not value:
        return '<td class="never">never</td>'
    return f'<td style="{shade(value, largest, "good")}">{short(value)}</td>'


# Cost.


def cost(facts: ReportFacts, rerun: Rerun) -> str:
    """What a seed of each scenario costs."""
    by_scenario: dict[str, list[Facts]] = {}
    for row in facts.seeds:
        by_scenario.setdefault(row["scenario"], []).append(row)
    if not by_scenario:
        return ""
    rows = list(map(_costs, by_scenario.values()))
    rows.sort(key=lambda row: -float(row["mean"]))
    figures = table(
        "cost of a seed by scenario",
        (
            "scenario", "number:seeds", "number:mean ms", "number:dearest", "number:its seed",
            "text:run it again",
        ),
        (_cost_row(row, rerun) for row in rows),
    )  # fmt: skip
    return section("Cost per seed", "Processor time of all sweeps, in milliseconds.", figures)


def _costs(rows: Sequence[Facts]) -> Facts:
    """The facts of the dearest sweep, and the mean of all."""
    seeds = sum(row["seeds"] for row in rows)
    mean = sum(row["cost"] * row["seeds"] for row in rows) / seeds
    return {**max(rows, key=lambda row: float(row["dearest"])), "seeds": seeds, "mean": mean}


def _cost_row(row: Facts, rerun: Rerun) -> list[str]:
    return [
        html.escape(row["scenario"]),
        f"{row['seeds']:,}",
        f"{row['mean']:,.0f}",
        f"{row['dearest']:,.0f}",
        str(row["dearest_seed"]),
        _command(rerun(row["scenario"], row["dearest_seed"], row["version"] or "")),
    ]
