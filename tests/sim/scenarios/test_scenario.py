from pathlib import Path

import pytest

from disque_trio.sim.scenarios.file import ScenarioError, load
from disque_trio.sim.scenarios.ranges import Choice, Range

HEAD = 'schema = 1\nname = "x"\n'
WORK = HEAD + "[[producer]]\nrate = 1\n"


def problems(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "x.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ScenarioError) as caught:
        load(path)
    return [problem.removeprefix(f"{path}:") for problem in caught.value.problems]


def test_a_minimal_file_has_defaults_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(HEAD)

    scenario = load(path)

    assert scenario.name == "x"
    assert scenario.cluster.nodes == Range(5, 5)
    assert scenario.end.chaos == Range(60_000_000, 60_000_000)
    assert scenario.link.latency.fast == Range(500, 2_000)
    assert scenario.engines == ("heap",)
    assert scenario.expect.lost == 0


def test_every_sort_of_value_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(
        HEAD
        + """
engines = ["heap", "tcp"]
[seeds]
nightly = 97
[cluster]
nodes = "3..7"
config = { "cluster-node-timeout" = 100, delivery-lease = false }
[link]
model = ["stream", "hostile"]
latency = { fast = "0.5ms..20ms", p_slow = 0.001, scale = "0.1..10 log" }
drop = "0.001..0.3 log"
bandwidth = "1..2 MB"
[clock]
drift_ppm = "-200..200"
wall_offset = "-1h..1h"
[[producer]]
at = [1, 3]
rate = 2.5
[producer.job]
queue = ["a", "b"]
retry = ["1s", "default", "2s..5s"]
replicate = 3
async = 0.25
[[consumer]]
ack = { ackjob = 0.95, none = "0..0.1" }
[[fault]]
kind = "clock-step"
at = "10s"
amount = "-1h..1h"
[[fault]]
kind = "crash"
when = { event = "send.gotjob", nth = 2 }
target = "event.node"
[swarm]
families = ["drift", "crash"]
p = 0.3
""",
        "utf-8",
    )

    scenario = load(path)

    assert scenario.seeds.nightly == 97
    assert scenario.cluster.config == (("cluster-node-timeout", "100"), ("delivery-lease", "no"))
    assert scenario.link.model == ("stream", "hostile")
    assert scenario.link.latency.scale == Range(0.1, 10, is_log=True)
    assert scenario.link.latency.fast == Range(500, 20_000)
    assert scenario.link.bandwidth == Range(1 << 20, 2 << 20)
    assert scenario.clock.wall_offset == Range(-3_600_000, 3_600_000)
    producer = scenario.producers[0]
    assert producer.at == (1, 3)
    assert producer.job.retry == Choice((Range(1, 1), None, Range(2, 5)))
    assert producer.job.async_ == Range(0.25, 0.25)
    assert scenario.consumers[0].ack[1] == ("none", Range(0, 0.1))
    assert scenario.faults[0].amount == ("time", Range(-3_600_000, 3_600_000))
    assert scenario.faults[1].when is not None
    assert scenario.faults[1].when.nth == Range(2, 2)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            HEAD + "[cluster]\nnode = 3\n",
            "4: unknown key 'node', did you mean 'nodes'?",
        ),
        (
            HEAD + "[link]\nlatency = { fast = '1ms',\n pslow = 0.1 }\n".replace(",\n", ","),
            "4: unknown key 'pslow', did you mean 'p_slow'?",
        ),
        (
            HEAD + "[cluster]\nnodes = 0\n",
            (
                "4: nodes = 0 is not a whole number or range from 1 to 1000, such as `3` or `1..5` "
                "(from 1 to 1000)"
            ),
        ),
        (
            HEAD + "[cluster]\nnodes = true\n",
            "4: nodes = true is not a whole number or range from 1 to 1000, such as `3` or `1..5`",
        ),
        (
            HEAD + "[end]\nchaos = '10 parsecs'\n",
            (
                '4: chaos = "10 parsecs" is not a duration above 0 such as `50ms` or `5ms..50ms` '
                "(units are us, ms, s, m, h, d)"
            ),
        ),
        (
            HEAD + "[end]\nchaos = '10s..5s'\n",
            (
                '4: chaos = "10s..5s" is not a duration above 0 such as `50ms` or `5ms..50ms` '
                "(the first is the greater)"
            ),
        ),
        (
            HEAD + "[end]\nheal = 'ful'\n",
            "4: heal = \"ful\" is unknown, did you mean 'full'?",
        ),
        (
            HEAD + "[link]\ndrop = '0..0.5 log'\n",
            (
                '4: drop = "0..0.5 log" is not a number or range from 0 to 1, such as `0.05` '
                "(a log range starts above 0)"
            ),
        ),
        (
            HEAD + "[[producer]]\n",
            "3: rate is missing: a number or range above 0, such as `2.0` or `0.1..10 log`",
        ),
        (
            WORK + "[producer.job]\nretry = '500ms'\n",
            (
                '6: retry = "500ms" is not a duration in whole seconds '
                "(not a multiple of the smallest step)"
            ),
        ),
        (
            WORK + "[[consumer]]\nack = { ackjob = 1,\tnaak = 1 }\n",
            "6: unknown key 'naak', did you mean 'nack'?",
        ),
        (
            WORK + "[[consumer]]\nack = { ackjob = 0 }\n",
            "6: ack = { ackjob = 0 } is not a table of weights, by ways to end a job (no weight",
        ),
        (
            HEAD + "[[fault]]\nkind = 'crsh'\nat = '1s'\n",
            "4: kind = \"crsh\" is unknown, did you mean 'crash'?",
        ),
        (
            HEAD + "[[fault]]\nkind = 'crash'\nat = '1s'\n\nshape = 'ring'\n",
            "7: shape says nothing of crash, only of partition, clog, swizzle, drop, delay or",
        ),
        (
            HEAD + "[[fault]]\nkind = 'crash'\n",
            "3: nothing says when crash happens: say 'at', 'every' or 'when'",
        ),
        (
            HEAD + "[[fault]]\nkind = 'clock-step'\nat = '1s'\n",
            "3: amount is missing: clock-step takes a duration",
        ),
        (
            HEAD + "[[fault]]\nkind = 'clock-rate'\nat = '1s'\namount = '-1000000ppm'\n",
            "6: amount",
        ),
        (
            HEAD + "[[fault]]\nkind = 'clock-rate'\nat = '1s'\namount = '3s'\n",
            "6: amount of clock-rate is parts per million (200ppm)",
        ),
        (
            HEAD + "[[fault]]\nkind = 'crash'\nat = '1s'\ntarget = 'event.node'\n",
            "6: target needs an event: say 'when'",
        ),
        (
            HEAD + "[[fault]]\nkind = 'crash'\n[fault.when]\nevent = 'send.gotjobs'\n",
            "6: event = \"send.gotjobs\" is unknown, did you mean 'send.gotjob'?",
        ),
        (
            HEAD + "[[fault]]\nkind = 'crash'\nat = '1s'\nnodes = [1, 9]\n",
            "6: there is no node 9 among 5",
        ),
        (
            WORK + "at = 7\n",
            "5: there is no node 7 among 5",
        ),
        (
            HEAD + "[swarm]\nfamilies = [\n 'drift',\n 'drft',\n]\n",
            "6: nothing is of the family 'drft', did you mean 'drift'?",
        ),
        (
            HEAD + "[expect]\nduplicates = ['D1', 'DX']\n",
            '4: duplicates = "DX" is unknown',
        ),
        (
            HEAD + "[cluster.config]\ncluster-node-timout = 100\n",
            (
                "4: Bad directive or wrong number of arguments: there is no 'cluster-node-timout', "
                "did you mean 'cluster-node-timeout'?"
            ),
        ),
        (
            HEAD + "[cluster.config]\nhz = []\n",
            "4: hz takes a text, a number or a flag",
        ),
        (
            HEAD
            + "[[fault]]\nkind = 'crash'\nat = '1s'\n[[fault]]\nkind = 'wipe'\nat = '60s..70s'\n",
            "8: at = 60 s never comes: end.chaos is 60 s, and faults and adds end then",
        ),
        (
            HEAD + "[end]\nchaos = '5s..9s'\n[[fault]]\nkind = 'crash'\nevery = '10s'\n",
            "7: every = 10 s never comes: end.chaos is 9 s",
        ),
        (
            HEAD + "[[fault]]\nkind = 'crash'\nat = '61s'\n[fault.when]\nevent = 'serve'\n",
            "5: at = 61 s never comes",
        ),
        (
            WORK + "start = '2m'\n",
            "5: start = 120 s never comes",
        ),
        (HEAD + "[[consumer]]\n", "3: without producers, say which 'queues'"),
        ("name = 'x'\n", "1: schema is missing: 1, the version of this format"),
        ("schema = 2\nname = 'x'\n", "1: schema = 2 is not 1, the version of this format"),
        (HEAD + "link = 3\n", "3: link = 3 is not a table"),
        (HEAD + "producer = 3\n", "3: producer = 3 is not an array of tables"),
        (HEAD + "name = 'y'\n", "3: not TOML: Cannot overwrite a value"),
        (HEAD + "[link\n", "3: not TOML: Expected ']' at the end of a table declaration"),
        (HEAD + "about = 'x", '3: not TOML: Expected "\'"'),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    found = problems(tmp_path, text)

    assert len(found) == 1
    assert found[0].startswith(problem)


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, HEAD + "colour = 1\n[link]\ndrop = 2\n[end]\nheal = 'no'\n")

    assert [problem.split(":")[0] for problem in found] == ["3", "5", "7"]


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"name = '\xff'")

    with pytest.raises(ScenarioError, match="not UTF-8 at byte 8"):
        load(path)


# Bases.

BASE = """schema = 1
name = "base"
about = "the base"
[cluster]
nodes = 3
[end]
chaos = "10s"
heal = "core"
[[producer]]
rate = 1
[[fault]]
kind = "crash"
at = "1s"
"""


def test_a_scenario_says_only_what_differs_from_its_base(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(BASE)
    path = tmp_path / "x.toml"
    path.write_text(HEAD + 'base = "base"\n[end]\nchaos = "20s"\n[[fault]]\nkind="wipe"\nat="2s"\n')

    scenario = load(path)

    assert scenario.name == "x"
    assert scenario.about == "the base"
    assert scenario.end.chaos == Range(20_000_000, 20_000_000)
    assert scenario.end.heal == ("core",)
    assert [fault.kind for fault in scenario.faults] == ["wipe"]
    assert len(scenario.producers) == 1


def test_a_mistake_is_told_in_the_file_that_makes_it(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(BASE + 'shape = "ring"\n')
    path = tmp_path / "x.toml"
    path.write_text(HEAD + 'base = "base"\n[end]\nchaos = "x"\n')

    with pytest.raises(ScenarioError) as caught:
        load(path)

    assert [problem.split(" ")[0] for problem in caught.value.problems] == [
        f"{tmp_path}/base.toml:14:",
        f"{tmp_path}/x.toml:5:",
    ]


def test_a_missing_base_and_a_circle_are_told(tmp_path: Path) -> None:
    assert problems(tmp_path, HEAD + 'base = "gone"\n')[0].startswith("3: there is no ")
    assert problems(tmp_path, HEAD + 'base = "x"\n') == ["3: x is based on itself"]


def test_a_key_may_have_its_former_name(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(HEAD + "[apps]\ndeeds = { error = 2 }\n", "utf-8")

    apps = load(path).apps

    assert apps is not None
    assert apps.actions == (("error", Range(2, 2)),)


def test_a_former_name_beside_the_new_one_of_a_base_is_a_mistake(tmp_path: Path) -> None:
    text = HEAD + "[apps]\nactions = { error = 2 }\ndeeds = { error = 3 }\n"

    assert problems(tmp_path, text) == ["5: 'deeds' is called 'actions' now"]


def test_a_name_is_not_inherited(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(BASE)

    found = problems(tmp_path, 'schema = 1\nbase = "base"\n')

    assert found[0].startswith("1: name is missing")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("ack = { stall = 1 }", "ack.stall is for consumers of the kind `engine`"),
        ('kind = "engine"\nack = { deljob = 1 }', "ack.deljob is for consumers of the kind `loop`"),
        (
            'kind = "engine"\nack = { none = 1 }',
            "ack.none lets an engine's job run until its limit",
        ),
        ('kind = "engine"\nack = { stall = 1 }', "ack.stall needs to know for how long: say stall"),
        ("held = true", "held needs tied"),
        ('kind = "engine"\nack = { bury = 1 }', "ack.bury of an engine needs meta"),
    ],
)
def test_what_a_kind_of_consumer_cannot_do_is_refused(
    tmp_path: Path, keys: str, problem: str
) -> None:
    (found,) = problems(tmp_path, WORK + "[[consumer]]\n" + keys + "\n")

    assert problem in found
