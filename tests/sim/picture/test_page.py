import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attrs
import pytest

from disque_trio.sim.checkers.verdict import Verdict, judge
from disque_trio.sim.picture import page
from disque_trio.sim.picture.job_states import JobState
from disque_trio.sim.scenarios.plan import Add, Plan
from disque_trio.tracing.rows import Row
from tests.sim.picture import examples

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
VOID = {"meta", "input", "br"}
NASTY = "</script><script>alert(1)</script><!--\u2028 & 'quoted' \"twice\" \\ ö"


def judged(plan: Plan, rows: list[Row]) -> Verdict:
    the_judge = judge(plan)
    for row in rows:
        the_judge.see(row)
    return the_judge.finish()


def split_brain() -> str:
    plan, rows = examples.cut_plan(), examples.split_brain()
    return page.render(plan, rows, judged(plan, rows))


class Outline(HTMLParser):
    """Elements as they open and close, and the text of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


def outline(text: str) -> Outline:
    parser = Outline()
    parser.feed(text)
    parser.close()
    return parser


def data(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(outline(text).scripts[0])
    return found


def test_the_page_is_well_formed() -> None:
    found = outline(split_brain())

    assert found.open == []
    assert len(found.scripts) == 2


def test_the_page_needs_nothing_else() -> None:
    text = split_brain()

    assert not {"src", "href"} & {name for name, _ in outline(text).attributes}
    assert re.findall(r"https?:", text) == []
    assert re.findall(r"@import|url\(|fetch\(|XMLHttpRequest|<!-- put:", text) == []


def test_what_clients_send_cannot_leave_the_data() -> None:
    rows = examples.calm()
    rows = [
        attrs.evolve(row, queue=NASTY if row.queue else "", detail=f"body={NASTY}") for row in rows
    ]
    plan = examples.plan(scenario=NASTY)

    text = page.render(plan, rows, judged(plan, rows), replay=NASTY)

    found = outline(text)
    assert len(found.scripts) == 2
    shown = data(text)
    assert shown["run"]["jobs"][0][1] == NASTY
    assert f"body={NASTY}" in shown["run"]["words"]
    assert shown["head"]["replay"] == NASTY
    assert "\u2028" not in text.split("<title>")[1].split("</title>")[1]


def test_rows_come_out_as_they_went_in() -> None:
    rows = examples.calm()
    shown = data(page.render(examples.plan(), rows, None))["run"]

    columns, words = shown["rows"], shown["words"]
    lifelines = [*shown["nodes"], *shown["agents"]]
    assert lifelines == ["n1", "n2", "n3", "p1", "c1"]
    time = 0
    for number, row in enumerate(rows):
        time += columns["time"][number]
        assert time == row.time
        assert words[columns["kind"][number]] == row.kind
        assert words[columns["cause"][number]] == row.cause
        assert words[columns["detail"][number]] == row.detail
        assert columns["job"][number] == (0 if row.kind != "end" else -1)
    assert [lifelines[lifeline] for lifeline in columns["lifeline"][:2]] == ["p1", "n1"]
    assert columns["mate"][2] == 1


def test_a_job_has_its_queue_and_the_copies_wanted() -> None:
    assert data(split_brain())["run"]["jobs"] == [[examples.job_id(1), "q", 3]]


def test_moves_tell_what_each_row_changed() -> None:
    moves = data(page.render(examples.plan(), examples.calm(), None))["run"]["moves"]

    assert moves[:5] == [3, 0, 1, JobState.NONE, JobState.HELD]
    assert len(moves) % 5 == 0


def test_operations_have_their_outcomes() -> None:
    shown = data(page.render(examples.plan(), examples.crash(), None))
    found = shown["run"]["operations"]
    operations = [tuple(found[at : at + 4]) for at in range(0, len(found), 5)]

    assert operations == [(3, 1_000_000, 1_001_000, 0), (3, 1_401_000, 4_602_000, 2)]


def test_the_head_tells_the_verdict_and_how_to_run_it_again() -> None:
    head = data(split_brain())["head"]

    assert head["ok"] is False
    assert head["seed"] == 7
    assert head["replay"] == "disque-trio sim run scenarios/example.toml --seed 7"
    assert head["findings"][0][:3] == ["D2", examples.job_id(1), 2_491_600]
    assert head["findings"][1][0] == "S2"
    assert head["properties"].keys() == {"S2"}
    assert ["duplicates", 1, "D2 × 1"] in head["counts"]


def test_a_duplicate_points_to_both_deliveries() -> None:
    rows = examples.split_brain()
    [repeat] = data(split_brain())["run"]["repeats"]

    job, row, first, cause = repeat
    assert (job, cause) == (0, "D2")
    assert (rows[first].client, rows[row].client) == ("c1", "c2")
    assert data(split_brain())["causes"]["D2"]


def test_without_a_verdict_duplicates_have_no_cause() -> None:
    shown = data(page.render(examples.cut_plan(), examples.split_brain(), None))

    assert shown["head"]["ok"] is None
    assert shown["run"]["repeats"][0][3] == ""


def test_a_live_history_begins_at_its_first_row() -> None:
    noon = 1_760_000_000_000_000
    rows = [
        Row(noon, "start", "0a1b2c3d", cause="fresh"),
        Row(noon + 5, "hold", "0a1b2c3d", examples.job_id(1), cause="add"),
        Row(noon + 6, "serve", "0a1b2c3d", examples.job_id(1), client="127.0.0.1:5000"),
        Row(noon + 9, "serve", "0a1b2c3d", examples.job_id(1), client="127.0.0.1:5001"),
    ]
    plan = Plan(scenario="live", seed=0, nodes=1)

    shown = data(page.render(plan, rows, None))

    assert shown["run"]["nodes"] == ["0a1b2c3d"]
    assert shown["run"]["rows"]["time"] == [0, 5, 1, 3]
    assert shown["head"]["zero"] == "2025-10-09 08:53:20 UTC"
    assert shown["run"]["repeats"] == [[0, 3, 2, ""]]


def test_the_heartbeat_of_an_endless_run_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "ROWS_MOST", 100)
    rows = examples.large(jobs=4)
    heartbeats = [row for row in rows if row.cause in {"ping", "pong"}]

    shown = data(page.render(examples.plan(nodes=5), rows, None))

    assert shown["head"]["left_out"] == len(heartbeats)
    assert len(shown["run"]["rows"]["time"]) == len(rows) - len(heartbeats)


# In a browser.

WATCH = (
    "<script>window.addEventListener('error', (event) => {"
    " document.title = 'FAILED ' + event.message; });</script>"
)
ASK = "<script>try { %s } catch (e) { document.title = 'FAILED ' + e; }</script>"


def in_browser(text: str, path: Path, script: str) -> str:
    """The document after the script has run."""
    assert CHROMIUM is not None
    file = path / "page.html"
    file.write_text(
        text.replace("<head>", f"<head>{WATCH}").replace("</body>", f"{ASK % script}</body>")
    )
    flags = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=3000",
        "--dump-dom",
    )
    done = subprocess.run(
        [CHROMIUM, *flags, f"--user-data-dir={path / 'profile'}", f"file://{file}"],
        capture_output=True, timeout=100, check=True,
    )  # fmt: skip
    dom = done.stdout.decode()
    title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert title is not None
    assert not title[1].startswith("FAILED"), title[1]
    return dom


needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


@needs_chromium
def test_a_browser_draws_the_duplicate(tmp_path: Path) -> None:
    dom = in_browser(split_brain(), tmp_path, "")

    assert "D2: the acknowledgement was on the other side of a partition" in dom
    assert ">FAIL<" in dom
    assert dom.count('class="node ') == 3
    assert "c2 has J1 in hand, from n2" in dom


@pytest.mark.slow
@needs_chromium
def test_every_key_and_every_step_works(tmp_path: Path) -> None:
    keys = ["End", "ArrowLeft", "Home", "ArrowRight", "t", "c", "d", "+", "-", "n", "p", " ", " "]
    strike = "document.dispatchEvent(new KeyboardEvent('keydown', { key }));"
    press = f"for (const key of {json.dumps(keys)}) {strike}"
    walk = (
        "for (let n = 0; n < 70; n++) timeline.goToPlace(n);"
        "for (let n = 70; n >= 0; n--) timeline.goToPlace(n);"
    )
    all_of_it = "for (const job of [EVERYTHING, CLUSTER, 0]) choose(job);"
    back = (
        "const states = new States(run); states.seek(run.count); states.seek(-1);"
        "if ([...states.of.values()].flat().some(Boolean)) throw new Error('not undone');"
    )

    dom = in_browser(split_brain(), tmp_path, press + walk + all_of_it + back)

    assert 'data-theme="dark"' in dom


@pytest.mark.sample(4)
@needs_chromium
@pytest.mark.parametrize("name", ["calm", "crash", "empty", "nasty"])
def test_other_runs_can_be_drawn(name: str, tmp_path: Path) -> None:
    runs: dict[str, list[Row]] = {
        "calm": examples.calm(),
        "crash": examples.crash(),
        "empty": [],
        "nasty": examples.calm(),
    }
    adds = (Add(at=0, node=1, producer="p1", queue=NASTY, body=NASTY),)
    plan = examples.plan(scenario=NASTY, adds=adds) if name == "nasty" else examples.plan()

    dom = in_browser(page.render(plan, runs[name], None), tmp_path, "choose(EVERYTHING)")

    assert "NOT JUDGED" in dom


@pytest.mark.slow
@needs_chromium
def test_a_large_run_draws_only_what_is_in_sight(tmp_path: Path) -> None:
    rows = examples.large(jobs=2000)
    assert len(rows) > 100_000
    count = "document.title = 'drawn ' + document.querySelectorAll('.scroll svg *').length;"

    dom = in_browser(
        page.render(examples.plan(nodes=5), rows, None), tmp_path, "choose(EVERYTHING);" + count
    )

    drawn = re.search(r"drawn (\d+)", dom)
    assert drawn is not None
    assert 100 < int(drawn[1]) < 3000
