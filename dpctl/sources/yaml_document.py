"""One document in YAML or JSON, as people and kubelets write it. yaml loads where it is no JSON.

What the document means is its reader's.
"""

from __future__ import annotations

import json
import math
from typing import Any

from dpctl.env.reading import CONSTRUCTOR_ERRORS
from dpctl.errors import BadDataError

_HINT = "YAML or JSON is read here; look at the file"


def parse_document(data: bytes, where: str) -> Any:
    """Only what JSON knows: mappings with text keys, lists, texts, numbers; None for an empty text.
    Raises BadDataError, with the line where the text is bad."""
    found = parse_documents(data, where)
    if len(found) > 1:
        raise BadDataError(f"{where}: {len(found)} documents, one is wanted", _HINT)
    return found[0] if found else None


def parse_documents(data: bytes, where: str) -> list[Any]:
    """As `parse_document`, of a text that may hold several (`---` between them)."""
    try:
        return [_plain(document) for document in _load(data, where)]
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


def _load(data: bytes, where: str) -> list[Any]:
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

    class Loader(yaml.SafeLoader):
        """Without aliases: a dozen of them can stand for more text than there is memory."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("an alias, which no kubelet's file needs")
            return super().compose_node(parent, index)

    try:
        return list(yaml.load_all(text, Loader))
    except (yaml.YAMLError, RecursionError, *CONSTRUCTOR_ERRORS) as e:
        mark = getattr(e, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark is not None else ""
        problem = getattr(e, "problem", None) or str(e) or type(e).__name__
        raise BadDataError(f"{where}: {place}{problem}", _HINT) from e
