"""One document in YAML or JSON, as people and kubelets write it. yaml loads where it is no JSON.

What the document means is its reader's.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from dpctl.env.reading import CONSTRUCTOR_ERRORS
from dpctl.errors import BadDataError

_DEEPEST = 100
_LONGEST_NUMBER = 1000
_MOST_REPEATED = 100_000
"""Values that aliases of one text may stand for, all together."""
# All of a YAML number's letters: hexadecimal, `1:30` (base 60), `1_000`, `1e3`.
_NUMBER = re.compile(r"[-+0-9a-fA-FxX_:.]+")
_HINT = "YAML or JSON is read here; look at the file"


def parse_document(data: bytes, where: str) -> Any:
    """Only what JSON knows: mappings with text keys, lists, texts, numbers; None for an empty text.
    Raises BadDataError, with the line where the text is bad."""
    found = parse_documents(data, where)
    if len(found) > 1:
        raise BadDataError(f"{where}: {len(found)} documents, one is wanted", _HINT)
    return found[0] if found else None


def parse_documents(data: bytes, where: str, *, aliases: bool = False) -> list[Any]:
    """As `parse_document`, of a text that may hold several (`---` between them). `aliases`: whether
    it may have them, as what people write has."""
    try:
        return [_plain(document) for document in _load(data, where, aliases)]
    except RecursionError as e:
        raise BadDataError(f"{where}: nested too deeply") from e


def _plain(value: Any) -> Any:
    """Only what JSON knows: YAML also has dates, bytes, sets and numbers as keys."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)


def _load(data: bytes, where: str, aliases: bool) -> list[Any]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise BadDataError(f"{where}: not UTF-8 (byte {e.start})", _HINT) from e
    if text.lstrip()[:1] == "{":
        try:
            return [json.loads(text)]
        except (ValueError, RecursionError):
            pass  # flow YAML starts with a brace, too; its reader names the line
    import yaml

    # libyaml where there is one: a CDI specification of 100 KiB takes the other one seconds.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_traps(yaml.parse(text, loader), aliases)
        return list(yaml.load_all(text, loader))
    except (yaml.YAMLError, RecursionError, *CONSTRUCTOR_ERRORS) as e:
        mark = getattr(e, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark is not None else ""
        problem = getattr(e, "problem", None) or str(e) or type(e).__name__
        raise BadDataError(f"{where}: {place}{problem}", _HINT) from e


def _refuse_traps(events: Iterable[Any], aliases: bool) -> None:
    """Aliases, a dozen of which can stand for more text than there is memory (where they are taken,
    too many of them); depth, which libyaml's loader has no guard against; and numbers so long that
    they take minutes (`1:1:1:…`) or can be no text afterwards (`0xfff…`). Seen in the events,
    before anything is built."""
    import yaml

    depth = 0
    repeated = _Repeated()
    for event in events:
        if isinstance(event, yaml.AliasEvent) and not aliases:
            raise yaml.YAMLError("an alias, which no file of a node needs")
        if aliases:
            repeated.count(event)
        if isinstance(event, yaml.ScalarEvent) and _is_endless_number(event):
            raise yaml.YAMLError("a number that is too long")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise yaml.YAMLError("nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Repeated:
    """How many values the aliases of a text stand for."""

    def __init__(self) -> None:
        self._sizes: dict[str, int | None] = {}
        """Anchor to the number of values behind it; None: its end has not been seen."""
        self._open: list[tuple[str | None, int]] = []
        """Anchor of each collection that is open, and the values before it."""
        self._values = 0
        self._repeated = 0

    def count(self, event: Any) -> None:
        import yaml

        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = self._open.pop()
            if anchor is not None:
                self._sizes[anchor] = self._values - before
            return
        if isinstance(event, yaml.AliasEvent):
            # The loader tells of an anchor that there is not.
            size = self._sizes.get(str(event.anchor), 0)
            if size is None:
                raise yaml.YAMLError("an alias inside of what it stands for")
            self._values += size
            self._repeated += size
            if self._repeated > _MOST_REPEATED:
                raise yaml.YAMLError("its aliases stand for more than any pod has")
        elif isinstance(event, yaml.NodeEvent):
            begins = isinstance(event, yaml.CollectionStartEvent)
            if begins:
                self._open.append((event.anchor, self._values))
            if event.anchor is not None:
                self._sizes[event.anchor] = None if begins else 1
            self._values += 1


def _is_endless_number(event: Any) -> bool:
    """What would become a number of its own accord, or by its tag."""
    if len(event.value) <= _LONGEST_NUMBER:
        return False
    if event.tag is not None:
        return str(event.tag).endswith((":int", ":float"))
    return bool(event.implicit[0] and _NUMBER.fullmatch(event.value))
