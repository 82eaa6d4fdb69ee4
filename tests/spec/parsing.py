"""The part of TLA+ that docs/spec uses: text into trees.

A tree is a tuple whose first item is its kind. Lists of conjunctions and disjunctions end by
indentation, as in TLA+.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import attrs

Tree = tuple[Any, ...]

_TOKEN: Final = re.compile(
    r"""\s+|\\\*[^\n]*|(?P<rule>-{4,}|={4,})|(?P<string>"[^"]*")|(?P<number>\d+)"""
    r"""|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<op>==|\|->|->|<<|>>|/\\|\\/|=>|<=|>=|\.\.|\]_|\\[A-Za-z]+|[-+=#<>~\\'@!.,:;(){}\[\]])"""
)
_PREFIX: Final = {"~": 4, "SUBSET": 8, "UNION": 8, "DOMAIN": 8, "[]": 4, "<>": 4}
_BINARY: Final = {
    "=>": 1, "\\/": 3, "/\\": 3,
    "=": 5, "#": 5, "<": 5, ">": 5, "<=": 5, ">=": 5,
    "\\in": 5, "\\notin": 5, "\\subseteq": 5,
    "\\cup": 8, "\\cap": 8, "\\": 8, "..": 9, "+": 10, "-": 10,
}  # fmt: skip
_SECTIONS: Final = {"CONSTANTS", "CONSTANT", "VARIABLES", "VARIABLE", "EXTENDS"}
_NOWHERE: Final = -1


@attrs.frozen
class Token:
    """`kind` is rule, string, number, word, op or end."""

    kind: str
    text: str
    column: int
    at: int


@attrs.frozen
class Definition:
    """`name(params) == body`, and the comment above it."""

    name: str
    params: tuple[str, ...]
    body: Tree
    comment: str


@attrs.frozen
class Module:
    """A parsed file."""

    name: str
    constants: tuple[str, ...]
    variables: tuple[str, ...]
    definitions: dict[str, Definition]


def _without_comments(text: str) -> str:
    """The same text, with blanks in the place of comments."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    return re.sub(r"\\\*[^\n]*", blank, re.sub(r"\(\*.*?\*\)", blank, text, flags=re.DOTALL))


def _tokens(text: str) -> list[Token]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            line = text.count("\n", 0, at) + 1
            raise SyntaxError(f"line {line}: {text[at : at + 20]!r}")
        if found.lastgroup:
            column = at - (text.rfind("\n", 0, at) + 1)
            tokens.append(Token(found.lastgroup, found[0], column, at))
        at = found.end()
    return [*tokens, Token("end", "", _NOWHERE, at)]


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(_without_comments(text))
        self.at = 0
        self.bars = [_NOWHERE]
        """The columns of the lists that are open: a token there or left of it ends an item."""

    def peek(self) -> Token:
        token = self.tokens[self.at]
        return Token("end", "", _NOWHERE, token.at) if token.column <= self.bars[-1] else token

    def take(self, text: str | None = None) -> str:
        token = self.peek()
        if token.kind == "end" or (text is not None and token.text != text):
            line = self.text.count("\n", 0, token.at) + 1
            raise SyntaxError(f"line {line}: {text or 'something'} is missing at {token.text!r}")
        self.at += 1
        return token.text

    def accept(self, text: str) -> bool:
        if self.peek().text == text:
            self.at += 1
            return True
        return False

    def listed(self, item: Callable[[], Any], end: str) -> tuple[Any, ...]:
        """Items with commas between them, up to `end`."""
        items: list[Any] = []
        if self.accept(end):
            return ()
        while True:
            items.append(item())
            if self.accept(end):
                return tuple(items)
            self.take(",")

    # Expressions.

    def expression(self, least: int = 0) -> Tree:
        left = self.prefixed()
        while (op := self.peek().text) in _BINARY and _BINARY[op] >= least:
            self.take()
            # "=>" alone binds to the right here; nothing else is chained without parentheses.
            left = ("op", op, left, self.expression(_BINARY[op] + (op != "=>")))
        return left

    def prefixed(self) -> Tree:
        token = self.peek()
        if token.text in ("/\\", "\\/"):
            return self.junction(token)
        if token.text in _PREFIX:
            self.take()
            return ("prefix", token.text, self.expression(_PREFIX[token.text]))
        if token.text in ("\\A", "\\E", "CHOOSE"):
            return self.quantified(self.take())
        if token.text == "IF":
            self.take()
            condition = self.expression()
            self.take("THEN")
            then = self.expression()
            self.take("ELSE")
            return ("if", condition, then, self.expression())
        if token.text == "LET":
            return self.let()
        return self.postfixed(self.atom())

    def junction(self, bullet: Token) -> Tree:
        items = []
        while True:
            token = self.tokens[self.at]
            if token.text != bullet.text or token.column != bullet.column:
                break
            self.at += 1
            self.bars.append(bullet.column)
            items.append(self.expression())
            self.bars.pop()
        return ("all" if bullet.text == "/\\" else "any", tuple(items))

    def quantified(self, kind: str) -> Tree:
        names = [self.take()]
        while self.accept(","):
            names.append(self.take())
        self.take("\\in")
        domain = self.expression(6)
        self.take(":")
        body = self.expression()
        for name in reversed(names):
            body = (kind, name, domain, body)
        return body

    def let(self) -> Tree:
        self.take("LET")
        named = []
        while not self.accept("IN"):
            name = self.take()
            self.take("==")
            named.append((name, self.expression()))
        return ("let", tuple(named), self.expression())

    def atom(self) -> Tree:  # noqa: C901, PLR0911 - a case for each form
        token = self.peek()
        text = self.take()
        if token.kind == "number":
            return ("value", int(text))
        if token.kind == "string":
            return ("value", text[1:-1])
        if text in ("TRUE", "FALSE"):
            return ("value", text == "TRUE")
        if text == "(":
            inner = self.expression()
            self.take(")")
            return inner
        if text == "<<":
            return ("tuple", self.listed(self.expression, ">>"))
        if text == "{":
            return self.braces()
        if text == "[":
            return self.brackets()
        if text == "UNCHANGED":
            return ("unchanged", self.postfixed(self.atom()))
        if text == "@":
            return ("at",)
        if token.kind == "word":
            arguments = self.listed(self.expression, ")") if self.accept("(") else ()
            return ("name", text, arguments)
        raise SyntaxError(f"an expression cannot begin with {text!r}")

    def postfixed(self, tree: Tree) -> Tree:
        while True:
            if self.accept("'"):
                tree = ("prime", tree)
            elif self.accept("["):
                tree = ("apply", tree, self.expression())
                self.take("]")
            elif self.peek().text == ".":
                self.take()
                tree = ("apply", tree, ("value", self.take()))
            else:
                return tree

    def braces(self) -> Tree:
        if self.accept("}"):
            return ("set", ())
        first = self.expression()
        if self.accept(":"):
            if first[:2] == ("op", "\\in"):
                condition = self.expression()
                self.take("}")
                return ("filter", first[2][1], first[3], condition)
            name = self.take()
            self.take("\\in")
            domain = self.expression()
            self.take("}")
            return ("map", name, domain, first)
        if self.accept("}"):
            return ("set", (first,))
        self.take(",")
        return ("set", (first, *self.listed(self.expression, "}")))

    def brackets(self) -> Tree:
        if self.accept("]"):
            return ("prefix", "[]", self.expression(4))
        first = self.expression()
        if self.accept("|->"):
            if first[:2] == ("op", "\\in"):
                body = self.expression()
                self.take("]")
                return ("function", first[2][1], first[3], body)
            return self.record(first)
        if self.accept("->"):
            result = ("functions", first, self.expression())
            self.take("]")
            return result
        if self.accept("]_"):
            return ("stutter", first, self.atom())
        self.take("EXCEPT")
        return ("except", first, self.listed(self.change, "]"))

    def record(self, first: Tree) -> Tree:
        fields = [(first[1], self.expression())]
        while self.accept(","):
            name = self.take()
            self.take("|->")
            fields.append((name, self.expression()))
        self.take("]")
        return ("record", tuple(fields))

    def change(self) -> Tree:
        self.take("!")
        keys = []
        while self.peek().text in ("[", "."):
            if self.take() == "[":
                keys.append(self.expression())
                self.take("]")
            else:
                keys.append(("value", self.take()))
        self.take("=")
        return (tuple(keys), self.expression())

    # Modules.

    def module(self) -> Module:
        self.take()
        self.take("MODULE")
        name = self.take()
        self.take()
        sections: dict[str, list[str]] = {}
        definitions: dict[str, Definition] = {}
        end = 0
        while (token := self.peek()).kind != "end" and not token.text.startswith("===="):
            if token.kind == "rule":
                self.take()
            elif token.text in _SECTIONS:
                section = sections.setdefault(self.take().rstrip("S"), [])
                section.append(self.take())
                while self.accept(","):
                    section.append(self.take())
            else:
                one = self.definition(end)
                definitions[one.name] = one
            end = self.tokens[self.at - 1].at
        constants, variables = sections.get("CONSTANT", []), sections.get("VARIABLE", [])
        return Module(name, tuple(constants), tuple(variables), definitions)

    def definition(self, end: int) -> Definition:
        start = self.peek().at
        between = self.text[end:start]
        comment = "\n".join(re.findall(r"\(\*(.*?)\*\)", between, flags=re.DOTALL))
        name = self.take()
        params = self.listed(self.take, ")") if self.accept("(") else ()
        self.take("==")
        after = self.tokens[self.at]
        # A body begins to the right of its name's column, and the next definition does not.
        self.bars.append(0 if after.column > 0 else _NOWHERE)
        body = self.expression()
        self.bars.pop()
        return Definition(name, params, body, comment)


def parse(text: str) -> Module:
    """A module. Raises SyntaxError."""
    return _Parser(text).module()


def listed_in(comment: str, word: str) -> list[str]:
    """What the lines of a comment that begin with `word:` list, between commas."""
    found: list[str] = []
    for line in re.findall(rf"^ *{word}:(.*)$", comment, flags=re.MULTILINE):
        found += [each.strip() for each in line.split(",") if each.strip()]
    return found
