import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from disque_trio.sim.scenarios.toml_lines import Path, line_of, lines

TEXT = '''\
# a comment
name = "x" # "quoted"
about = """
two = 2
[three]
"""

[link]
latency = { fast = "1ms", "p slow" = 0.5 }
a.b.'c d' = 1979-05-27T07:32:00Z
[[fault]]
kind = 'cut' # [[fault]]
nodes = [
  1,
  2, # three = 3
  { x = [[1], [
    2]] },
]
[[fault]]
  [fault.when]
  event = "a\\"b = 1"

[arm.control.expect]
lost = 3
[[arm.control.fault]]
kind = "crash"
'''


def test_each_key_is_found_at_its_line() -> None:
    tomllib.loads(TEXT)

    assert lines(TEXT) == {
        ("name",): 2,
        ("about",): 3,
        ("link",): 8,
        ("link", "latency"): 9,
        ("link", "latency", "fast"): 9,
        ("link", "latency", "p slow"): 9,
        ("link", "a"): 10,
        ("link", "a", "b"): 10,
        ("link", "a", "b", "c d"): 10,
        ("fault", 0): 11,
        ("fault", 0, "kind"): 12,
        ("fault", 0, "nodes"): 13,
        ("fault", 0, "nodes", 0): 14,
        ("fault", 0, "nodes", 1): 15,
        ("fault", 0, "nodes", 2): 16,
        ("fault", 0, "nodes", 2, "x"): 16,
        ("fault", 0, "nodes", 2, "x", 0): 16,
        ("fault", 0, "nodes", 2, "x", 0, 0): 16,
        ("fault", 0, "nodes", 2, "x", 1): 16,
        ("fault", 0, "nodes", 2, "x", 1, 0): 17,
        ("fault", 1): 19,
        ("fault", 1, "when"): 20,
        ("fault", 1, "when", "event"): 21,
        ("arm", "control", "expect"): 23,
        ("arm", "control", "expect", "lost"): 24,
        ("arm", "control", "fault", 0): 25,
        ("arm", "control", "fault", 0, "kind"): 26,
    }


def test_what_stands_nowhere_is_sought_around() -> None:
    found = lines("a = 1\n\n[link]\nx = 1\n")

    assert line_of(found, ("link", "latency", "fast")) == 3
    assert line_of(found, ("nothing",)) == 1


def test_keys_may_be_quoted_and_escaped() -> None:
    assert lines('"a\\u0062\\t\\"" = 1') == {('ab\t"',): 1}


def test_an_empty_text_has_no_keys() -> None:
    assert lines("") == {}
    assert lines("# nothing\n\n") == {}


SCALARS = st.sampled_from(
    ["1", "-2.5", "true", "inf", '"a # ] } ="', "'b , ['", '"""\nx"\n"""', "'''\ny = 1\n'''", '""']
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[ " + " ,\n ".join(items) + " ]"),
        st.lists(inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"k{n} = {item}" for n, item in enumerate(items)) + "}"
        ),
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.sampled_from(["", "[t]", "[[a]]", "[a.x]"]), VALUES), max_size=6))
def test_every_key_that_tomllib_finds_has_a_line_that_names_it(
    parts: list[tuple[str, str]],
) -> None:
    text = ""
    for number, (header, value) in enumerate(parts):
        text += f"{header}\nkey{number} = {value}\n"
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return

    found = lines(text)

    rows = text.split("\n")
    for path in _paths(document):
        if isinstance(path[-1], str) and path in found:
            assert path[-1] in rows[found[path] - 1]
        elif isinstance(path[-1], str):
            assert path[-1] in {"a", "t"}, path


def _paths(value: Any, path: Path = ()) -> list[Path]:
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    else:
        return []
    paths: list[Path] = []
    for key, child in children:
        paths += [(*path, key), *_paths(child, (*path, key))]
    return paths
