"""As much of PromQL as the alerts and the dashboard use, over two scrapes of one node."""

import operator
import re
from collections.abc import Callable, Iterable
from typing import Final

import attrs

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Value = Vector | float

_TOKEN: Final = re.compile(
    r'\s*("[^"]*"|\[[^]]*\]|\d+(?:\.\d+)?|[A-Za-z_]\w*|=~|!~|!=|==|>=|<=|[-=<>(){},*/])'
)
_COMPARED: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt, "<": operator.lt, "==": operator.eq, ">=": operator.ge, "<=": operator.le,
}  # fmt: skip
_MATCHES: Final[dict[str, Callable[[str, str], bool]]] = {
    "=": lambda value, wanted: value == wanted,
    "!=": lambda value, wanted: value != wanted,
    "=~": lambda value, wanted: re.fullmatch(wanted, value) is not None,
    "!~": lambda value, wanted: re.fullmatch(wanted, value) is None,
}
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}


@attrs.frozen
class Scrape:
    """What a node told at one moment, in Unix seconds."""

    at: float
    samples: dict[tuple[str, Labels], float]

    def select(self, name: str, fits: Callable[[dict[str, str]], bool]) -> Vector:
        """The series of a metric."""
        return {
            labels: value
            for (metric, labels), value in self.samples.items()
            if metric == name and fits(dict(labels))
        }


@attrs.define
class Query:
    """An expression, with the scrapes that it is asked of: the first and the last of its ranges."""

    text: str
    earlier: Scrape
    now: Scrape
    _words: list[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._words = _TOKEN.findall(self.text)
        assert "".join(self._words) == re.sub(r"\s(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", "", self.text)

    def value(self) -> Value:
        """What it is now."""
        found = self._comparison()
        assert not self._words, f"not understood: {self._words}"
        return found

    def _take(self, *wanted: str) -> str:
        word = self._words.pop(0)
        assert not wanted or word in wanted, f"{word}, not {wanted}"
        return word

    def _next(self) -> str:
        return self._words[0] if self._words else ""

    def _comparison(self) -> Value:
        found = self._sum()
        if self._next() not in _COMPARED:
            return found
        compare = _COMPARED[self._take()]
        other = self._sum()
        assert isinstance(found, dict)
        return {
            labels: value
            for labels, value in found.items()
            if (against := _against(labels, other)) is not None and compare(value, against)
        }

    def _sum(self) -> Value:
        found = self._product()
        while self._next() == "-":
            self._take()
            found = _apply(operator.sub, found, self._product())
        return found

    def _product(self) -> Value:
        found = self._term()
        while self._next() in ("*", "/"):
            combine = operator.mul if self._take() == "*" else _divided
            found = _apply(combine, found, self._term())
        return found

    def _term(self) -> Value:
        word = self._take()
        if word[0].isdigit():
            return float(word)
        if word == "time":
            self._take("(")
            self._take(")")
            return self.now.at
        if word == "sum":
            return self._summed()
        if word == "histogram_quantile":
            self._take("(")
            quantile = float(self._take())
            self._take(",")
            found = self._comparison()
            self._take(")")
            assert isinstance(found, dict)
            return _quantile(quantile, found)
        if word in ("rate", "increase", "delta"):
            return self._ranged(word)
        return self.now.select(word, self._matchers())

    def _summed(self) -> Vector:
        kept: list[str] = []
        if self._next() == "by":
            self._take()
            self._take("(")
            while (word := self._take()) != ")":
                kept += [word] if word != "," else []
        self._take("(")
        found = self._comparison()
        self._take(")")
        assert isinstance(found, dict)
        total: Vector = {}
        for labels, value in found.items():
            key = frozenset((name, each) for name, each in labels if name in kept)
            total[key] = total.get(key, 0) + value
        return total

    def _ranged(self, word: str) -> Vector:
        self._take("(")
        name, fits = self._take(), self._matchers()
        self._take()
        self._take(")")
        before, after = self.earlier.select(name, fits), self.now.select(name, fits)
        seconds = self.now.at - self.earlier.at
        found: Vector = {}
        for labels in before.keys() & after.keys():
            # A counter that has become smaller began at 0 again; so does a gauge, for `increase`.
            is_reset = after[labels] < before[labels] and word != "delta"
            grown = after[labels] - (0 if is_reset else before[labels])
            found[labels] = grown / seconds if word == "rate" else grown
        return found

    def _matchers(self) -> Callable[[dict[str, str]], bool]:
        wanted = []
        if self._next() == "{":
            self._take()
            while (name := self._take()) != "}":
                if name != ",":
                    wanted.append((name, self._take(*_MATCHES), self._take().strip('"')))
        return lambda labels: all(
            _MATCHES[how](labels.get(name, ""), value) for name, how, value in wanted
        )


def _against(labels: Labels, other: Value) -> float | None:
    return other.get(labels) if isinstance(other, dict) else other


def _divided(one: float, other: float) -> float:
    return one / other if other else float("nan")


def _apply(combine: Callable[[float, float], float], one: Value, other: Value) -> Value:
    if isinstance(one, dict):
        pairs = ((labels, value, _against(labels, other)) for labels, value in one.items())
        return {labels: combine(a, b) for labels, a, b in pairs if b is not None}
    if isinstance(other, dict):
        return {labels: combine(one, value) for labels, value in other.items()}
    return combine(one, other)


def _quantile(quantile: float, buckets: Vector) -> Vector:
    """Of each histogram: the upper end of the bucket in which it is, or the end of the last but
    one."""
    histograms: dict[Labels, list[tuple[float, float]]] = {}
    for labels, count in buckets.items():
        bound = float(dict(labels)["le"].replace("+Inf", "inf"))
        rest = frozenset(each for each in labels if each[0] != "le")
        histograms.setdefault(rest, []).append((bound, count))
    return {
        labels: _within(quantile, sorted(found))
        for labels, found in histograms.items()
        if max(count for _, count in found)
    }


def _within(quantile: float, buckets: Iterable[tuple[float, float]]) -> float:
    *finite, (_, total) = buckets
    return next((bound for bound, count in finite if count >= quantile * total), finite[-1][0])
