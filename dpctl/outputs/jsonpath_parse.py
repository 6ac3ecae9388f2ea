"""Text → `jsonpath.Template` or `jsonpath.Path`. Knows the syntax, not what it does."""

from __future__ import annotations

import re
from typing import NoReturn

from dpctl.errors import UsageError
from dpctl.outputs.jsonpath import (
    EXAMPLE,
    Constant,
    Descent,
    Field,
    Filter,
    Node,
    Part,
    Path,
    Range,
    Slice,
    Template,
    Union,
    Wildcard,
)
from dpctl.text import shorten

_LONGEST = 64 * 1024
_DEEPEST = 64
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">")
_ENDS_FIELD = " \t\r\n.,[]$@{}"
_SLICE = re.compile(r"(-?[0-9]+)?(?::(-?[0-9]*))?(?::(-?[0-9]*))?")
_NUMBER = re.compile(r"[+-]?[0-9.]+")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def parse_template(text: str) -> Template:
    """A template as after `-o jsonpath=`. Without any brace it is one path (`.items[*].name`).

    Raises UsageError with the position (characters, from 1) and an example.
    """
    return _Parser(text).template() if "{" in text else Template((parse_path(text),))


def parse_path(text: str) -> Path:
    """One path, as `--sort-by` and custom-columns take it: `name`, `.name`, `{.name}`."""
    inner = text.lstrip()
    braced = inner.startswith("{")
    inner = inner[1:].lstrip() if braced else inner
    lead = "" if inner[:1] in ("", ".", "[", "$", "@", "}") else "."
    parser = _Parser(lead + inner, shown=text, shift=len(lead) - (len(text) - len(inner)))
    return parser.single("}" if braced else "")


class _Parser:
    def __init__(self, text: str, *, shown: str | None = None, shift: int = 0) -> None:
        self._text = text
        self._shown = text if shown is None else shown
        self._shift = shift
        """By how much positions in the text run ahead of those in what is shown."""
        self._at = 0
        self._depth = 0
        self._filters = 0
        """How many filters are open: inside one an operator or `)` ends a field."""
        if len(text) > _LONGEST:
            raise UsageError(f"jsonpath: an expression of {len(text)} characters", EXAMPLE)

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        position = max((self._at if at is None else at) - self._shift, 0) + 1
        shown = shorten(self._shown, 200)
        raise UsageError(f"jsonpath: {what} at character {position} of {shown!r}", EXAMPLE)

    # --- templates

    def template(self) -> Template:
        open_ranges: list[Path] = []
        bodies: list[list[Part]] = [[]]
        while self._at < len(self._text):
            start = self._at
            brace = self._text.find("{", start)
            if brace != start:
                self._at = len(self._text) if brace < 0 else brace
                bodies[-1].append(self._text[start : self._at])
                continue
            self._at += 1
            word = self._word()
            if word == "range":
                open_ranges.append(self._braced())
                bodies.append([])
            elif word == "end":
                if not open_ranges:
                    self.fail("{end} without a {range}", start)
                self._closing(start)
                body = tuple(bodies.pop())
                bodies[-1].append(Range(open_ranges.pop(), body))
            else:
                self._at = start + 1
                bodies[-1].append(self._braced())
            if len(open_ranges) > _DEEPEST:
                self.fail("too many {range} inside one another", start)
        while open_ranges:  # kubectl does not ask for the last {end}
            body = tuple(bodies.pop())
            bodies[-1].append(Range(open_ranges.pop(), body))
        return Template(tuple(bodies[0]))

    def _word(self) -> str:
        self._spaces()
        found = _WORD.match(self._text, self._at)
        if not found:
            return ""
        self._at = found.end()
        return found.group()

    def _braced(self) -> Path:
        start = self._at - 1
        path = self.path(end="}")
        self._closing(start)
        return path

    def _closing(self, start: int) -> None:
        self._spaces()
        if not self._text.startswith("}", self._at):
            self.fail("{ without its }", start)
        self._at += 1

    def _spaces(self) -> None:
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1

    # --- paths

    def single(self, end: str) -> Path:
        """The path that is the whole text, up to and with `end`."""
        path = self.path(end)
        if end:
            self._closing(self._shown.find("{") + self._shift)
            if self._text[self._at :].strip():
                self.fail("one path, and no more")
        if not path.nodes and not any(mark in self._text for mark in "$@."):
            self.fail("nothing to look for", 0)
        return path

    def path(self, end: str) -> Path:
        """Everything up to `end` (one of `}`, `)`, `]`; empty: the end of the text), which stays.

        Comparison operators and commas end a path too where they can follow one.
        """
        self._depth += 1
        if self._depth > _DEEPEST:
            self.fail("too deep")
        nodes: list[Node] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            if end and (character == end or (end == ")" and character in "=!<>")):
                break
            if character in " \t@$":  # the current object, where one stands already
                self._at += 1
            elif self._text.startswith("..", self._at):
                nodes += self._descent(nodes)
            elif character == ".":
                self._at += 1
                nodes += self._field()
            elif character == "[":
                nodes.append(self._bracket())
            elif character in "\"'":
                nodes.append(Constant(self._quoted()))
            elif character in "+-" or character.isdigit():
                nodes.append(self._number())
            else:
                nodes.append(self._bare_word(character))
        self._depth -= 1
        return Path(tuple(nodes))

    def _descent(self, before: list[Node]) -> list[Node]:
        if before and isinstance(before[-1], Descent):
            self.fail("`..` twice")
        self._at += 2
        following = self._text[self._at : self._at + 1]
        return [Descent(), *(self._field() if following.isalnum() or following == "_" else [])]

    def _field(self) -> list[Node]:
        letters: list[str] = []
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == "\\" and self._at + 1 < len(self._text):
                self._at += 1
                character = self._text[self._at]
            elif character in _ENDS_FIELD or self._ends_comparison(character):
                break
            letters.append(character)
            self._at += 1
        name = "".join(letters)
        if name == "*":
            return [Wildcard()]
        return [Field(name)] if name else []  # `{.}` is the object itself

    def _ends_comparison(self, character: str) -> bool:
        return self._filters > 0 and character in "=!<>)"

    def _number(self) -> Constant:
        found = _NUMBER.match(self._text, self._at)
        try:
            if not found:
                raise ValueError
            value = float(found.group()) if "." in found.group() else int(found.group())
        except ValueError:
            self.fail("no number")
        self._at = found.end()
        return Constant(value)

    def _bare_word(self, character: str) -> Constant:
        start = self._at
        word = self._word()
        if word in ("true", "false"):
            return Constant(word == "true")
        what = f'word {word!r} (a field is .{word}, a text "{word}")' if word else repr(character)
        return self.fail(f"unexpected {what}", start)

    def _quoted(self) -> str:
        start, quote = self._at, self._text[self._at]
        self._at += 1
        while self._at < len(self._text) and self._text[self._at] != quote:
            self._at += 2 if self._text[self._at] == "\\" else 1
        if self._at >= len(self._text):
            self.fail("a quote that does not end", start)
        self._at += 1
        return _ESCAPE.sub(_unescape, self._text[start + 1 : self._at - 1])

    # --- brackets

    def _bracket(self) -> Node:
        start = self._at
        if self._text.startswith("[?(", start):
            return self._filter(start)
        self._at += 1
        members = [self._member(start)]
        while self._text.startswith(",", self._at):
            self._at += 1
            members.append(self._member(start))
        if not self._text.startswith("]", self._at):
            self.fail("[ without its ]", start)
        self._at += 1
        return members[0] if len(members) == 1 else Union(tuple(Path((m,)) for m in members))

    def _member(self, start: int) -> Node:
        self._spaces()
        if self._text[self._at : self._at + 1] in ("'", '"'):
            node: Node = self._key()
        else:
            begin = self._at
            while self._at < len(self._text) and self._text[self._at] not in ",]":
                self._at += 1
            if self._at >= len(self._text):
                self.fail("[ without its ]", start)
            node = self._slice(self._text[begin : self._at].strip(), begin)
        self._spaces()
        return node

    def _key(self) -> Field:
        begin = self._at
        text = self._quoted()
        raw = self._text[begin + 1 : self._at - 1]
        # client-go reads the quoted text as a path; `\.` in it is a dot of the key itself.
        inner = None
        if re.search(r"[.\[]", raw):
            try:
                inner = parse_path(raw)
            except UsageError:
                inner = None
        return Field(text, inner)

    def _slice(self, text: str, at: int) -> Slice:
        if text == "*":
            return Slice(text, None, None)
        found = _SLICE.fullmatch(text)
        if not text or not found or len(text) > 60:
            self.fail(f"{shorten(text, 40)!r} is no index, slice or quoted key", at)
        numbers = [int(part) if part and part != "-" else None for part in found.groups()]
        step = 1 if numbers[2] is None else numbers[2]
        if step <= 0:
            self.fail("a step must be above 0", at)
        return Slice(text, numbers[0], numbers[1], step, single=":" not in text)

    def _filter(self, start: int) -> Filter:
        self._at += len("[?(")
        self._filters += 1
        left = self.path(end=")")
        operator = next((o for o in _OPERATORS if self._text.startswith(o, self._at)), "")
        right = None
        if operator:
            self._at += len(operator)
            right = self.path(end=")")
            if not right.nodes:
                self.fail(f"nothing to compare with after {operator}")
        self._filters -= 1
        if not self._text.startswith(")]", self._at):
            self.fail("a filter ends with )]; == != < <= > >= compare one pair", start)
        self._at += len(")]")
        return Filter(left, operator, right)


def _unescape(found: re.Match[str]) -> str:
    body = found.group(1)
    if body[0] in "xuU" and len(body) > 1:
        code = int(body[1:], 16)
        return chr(code) if code <= 0x10FFFF else found.group()
    if len(body) == 3:
        return chr(int(body, 8))
    return _SIMPLE.get(body, body)
