import pytest

from disque_trio.statemachine.pattern import matches


@pytest.mark.parametrize(
    ("pattern", "text", "does_match"),
    [
        (b"", b"", True),
        (b"", b"a", False),
        (b"*", b"", True),
        (b"port", b"port", True),
        (b"port", b"ports", False),
        (b"p?rt", b"port", True),
        (b"p?rt", b"prt", False),
        (b"*a*-*e", b"auto-aof-rewrite", True),
        (b"**ort", b"port", True),
        (b"h[ae]llo", b"hello", True),
        (b"h[ae]llo", b"hillo", False),
        (b"h[^a]llo", b"hello", True),
        (b"h[^a]llo", b"hallo", False),
        (b"h[a-e]llo", b"hcllo", True),
        (b"h[e-a]llo", b"hcllo", True),
        (b"h[\\]]llo", b"h]llo", True),
        (b"h[ae", b"ha", True),
        (b"h[a-", b"h-", True),
        (b"h[", b"h", False),
        (b"\\*", b"*", True),
        (b"\\*", b"a", False),
        (b"a\\", b"a\\", True),
    ],
)
def test_a_pattern_matches(pattern: bytes, text: bytes, does_match: bool) -> None:
    assert matches(pattern, text) is does_match


def test_a_pattern_full_of_stars_costs_little() -> None:
    assert not matches(b"*?" * 30 + b"*b", b"a" * 100)
