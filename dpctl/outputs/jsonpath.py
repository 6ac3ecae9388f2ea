r"""kubectl's JSONPath dialect: templates, and the paths inside their braces. Pure.

    {range .items[*]}{.name}{"\t"}{.numaNodes[0]}{"\n"}{end}

As client-go evaluates it, with these differences, each where client-go would fail or say nothing:
a quoted key is first tried as it stands (`['vendor.example/gpu']`), then as client-go's path; an
expression without braces is a path; null counts as missing in a filter, and finds nothing in one
instead of failing; numbers compare whether whole or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpctl.columns import cell_text
from dpctl.documents import json_text
from dpctl.errors import UsageError

EXAMPLE = "for example: -o jsonpath='{range .items[*]}{.name}{\"\\n\"}{end}'"


@dataclass(frozen=True, slots=True)
class Field:
    """`.name`, `['name']`: the value of one key; nothing where the key is missing."""

    name: str
    inner: Path | None = None
    """For a quoted key that is missing: the same text read as a path, as client-go does."""

    def find(self, values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if not isinstance(value, Mapping):
                continue
            if self.name in value:
                found.append(value[self.name])
            elif self.inner is not None:
                found += self.inner.find(value)
        return found


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`.*`: every value of a mapping, every item of a list."""

    def find(self, values: list[Any]) -> list[Any]:
        return [child for value in values for child in _children(value)]


@dataclass(frozen=True, slots=True)
class Descent:
    """`..`: everything that has something inside, from the outside in."""

    def find(self, values: list[Any]) -> list[Any]:
        found: list[Any] = []
        waiting = list(reversed(values))
        while waiting:
            value = waiting.pop()
            children = _children(value)
            if children or (isinstance(value, str) and value):
                found.append(value)
                waiting += reversed(children)
        return found


@dataclass(frozen=True, slots=True)
class Slice:
    """`[0]`, `[-1]`, `[0:2:1]`, `[*]`; never wraps around."""

    text: str
    start: int | None
    stop: int | None
    step: int = 1
    single: bool = False

    def find(self, values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise UsageError(f"jsonpath: [{self.text}] on {_kind(value)}, which is no list")
            found += self._of(value)
        return found

    def _of(self, items: list[Any]) -> list[Any]:
        length = len(items)
        start = 0 if self.start is None else self.start
        stop = start + 1 if self.single else length if self.stop is None else self.stop
        start = start + length if start < 0 else start
        stop = stop + length if stop < 0 or (self.single and stop == 0) else stop
        if start == stop:
            return []
        if not 0 <= start < length or not 0 <= stop <= length or start > stop:
            raise UsageError(
                f"jsonpath: [{self.text}] is outside a list of {length}",
                '[*] or a filter such as [?(@.name=="x")] never is',
            )
        return items[start : stop : self.step]


@dataclass(frozen=True, slots=True)
class Union:
    """`['name','state']`, `[0,2]`: what each of them finds, one after the other."""

    paths: tuple[Path, ...]

    def find(self, values: list[Any]) -> list[Any]:
        return [found for path in self.paths for found in path.find_all(values)]


@dataclass(frozen=True, slots=True)
class Constant:
    """A quoted text, a number or a truth value: stands in for whatever was found before."""

    value: str | int | float | bool

    def find(self, values: list[Any]) -> list[Any]:
        return [self.value] if isinstance(self.value, str) else [self.value for _ in values]


@dataclass(frozen=True, slots=True)
class Filter:
    """`[?(@.state=="Stale")]`, `[?(@.holder)]`: the items of a list for which it holds."""

    left: Path
    operator: str = ""
    right: Path | None = None

    def find(self, values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise UsageError(f"jsonpath: a filter on {_kind(value)}, which is no list")
            found += [item for item in value if self._holds(item)]
        return found

    def _holds(self, item: Any) -> bool:
        left = [value for value in self.left.find(item) if value is not None]
        if self.right is None:
            return bool(left)
        right = [value for value in self.right.find(item) if value is not None]
        if not left or not right:
            return False
        if len(left) > 1 or len(right) > 1:
            raise UsageError("jsonpath: a filter compares one value with one other, not lists")
        return _compare(left[0], self.operator, right[0])


Node = Field | Wildcard | Descent | Slice | Union | Constant | Filter


@dataclass(frozen=True, slots=True)
class Path:
    """What stands between two braces."""

    nodes: tuple[Node, ...]

    def find(self, value: Any) -> list[Any]:
        """All that it leads to in `value`. Raises UsageError where it cannot apply (an index
        outside its list, a comparison of number and text)."""
        return self.find_all([value])

    def find_all(self, values: list[Any]) -> list[Any]:
        for node in self.nodes:
            values = node.find(values)
        return values


@dataclass(frozen=True, slots=True)
class Range:
    """`{range PATH}…{end}`: the part between, once for each value of the path, which is what `$`
    and `@` mean there (as in kubectl)."""

    path: Path
    body: tuple[Part, ...]


Part = str | Path | Range


@dataclass(frozen=True, slots=True)
class Template:
    """A whole expression, ready to be applied to any number of documents."""

    parts: tuple[Part, ...]

    def render(self, document: Any, *, safe: bool) -> str:
        """`safe`: texts that come from the document are escaped (for a terminal)."""
        return "".join(_render(self.parts, document, safe))


def _render(parts: tuple[Part, ...], value: Any, safe: bool) -> list[str]:
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Range):
            for item in part.path.find(value):
                texts += _render(part.body, item, safe)
        else:
            # A text of the template itself, `{"\n"}`, is meant as it stands.
            own = len(part.nodes) > 0 and isinstance(part.nodes[-1], Constant)
            found = part.find(value)
            texts.append(" ".join(value_text(each, safe=safe and not own) for each in found))
    return texts


def value_text(value: Any, *, safe: bool) -> str:
    """A text as it is, everything else as compact JSON."""
    if not isinstance(value, str):
        return json_text(value)
    return cell_text(value, safe=safe) if value else ""


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, list):
        return "a list"
    return "null" if value is None else "an object"


def _compare(left: Any, operator: str, right: Any) -> bool:
    kinds = _kind(left), _kind(right)
    comparable = kinds[0] == kinds[1] and kinds[0] in ("a number", "a text")
    if not comparable and not (kinds == ("a truth value",) * 2 and operator in ("==", "!=")):
        raise UsageError(
            f"jsonpath: {operator} cannot compare {kinds[0]} with {kinds[1]}",
            'quote a text, [?(@.name=="2")], and leave a number bare, [?(@.total==2)]',
        )
    if operator == "==":
        return bool(left == right)
    if operator == "!=":
        return bool(left != right)
    if operator in ("<", "<="):
        return bool(left < right or (operator == "<=" and left == right))
    return bool(left > right or (operator == ">=" and left == right))
