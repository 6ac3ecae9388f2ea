"""The JSON Schema (2020-12) of the documents that `documents.py` makes, from the dataclasses.

Loaded by `dpctl schema` alone: it resolves type hints and reads the rows' source for their
attribute docstrings, which become descriptions.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
import typing
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from enum import Enum
from itertools import pairwise
from typing import Any, Literal, Union, get_args, get_origin

from dpctl.columns import Unknown
from dpctl.documents import API_VERSION, HIDDEN_IN_SOURCES, Envelope, fields_of, is_time, key_of
from dpctl.model import SourceRow

DRAFT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

_SIMPLE: dict[object, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    type(None): {"type": "null"},
    Unknown: {"type": "null"},
}
_TIME: Schema = {"type": "string", "format": "date-time"}


def json_schema(row_type: type, kind: str) -> Schema:
    """Schema of the list document whose items are rows of `row_type`; `kind` is one item's."""
    definitions: dict[str, Schema] = {}
    item = _type(row_type, False, definitions)
    source = _type(SourceRow, False, definitions)
    collected = _described(Envelope, "collected_at", {"anyOf": [_TIME, {"type": "null"}]})
    properties: dict[str, Schema] = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": f"{kind}List"},
        "items": {"type": "array", "items": item},
        "collectedAt": collected,
        "sources": {"type": "array", "items": source},
    }
    return {
        "$schema": DRAFT,
        "title": f"{kind}List",
        "description": f"What `dpctl -o json` prints for a list of kind {kind}.",
        **_object(properties),
        "$defs": definitions,
    }


def _object(properties: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _definition(row_type: type, definitions: dict[str, Schema]) -> Schema:
    name = row_type.__name__
    if name not in definitions:
        definitions[name] = {}  # holds the place: a type may contain itself
        hints = typing.get_type_hints(row_type, include_extras=True)
        properties: dict[str, Schema] = {}
        for field in fields_of(row_type):
            key = key_of(field)
            if key is None or (row_type is SourceRow and field.name == HIDDEN_IN_SOURCES):
                continue
            found = _type(hints[field.name], is_time(field), definitions)
            properties[key] = _described(row_type, field.name, found)
        text = inspect.cleandoc(row_type.__doc__ or "")
        # A dataclass without a docstring gets its signature as one.
        words = {} if text.startswith(f"{name}(") or not text else {"description": text}
        definitions[name] = {**words, **_object(properties)}
    return {"$ref": f"#/$defs/{name}"}


def _type(hint: Any, moment: bool, definitions: dict[str, Schema]) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        return _type(arguments[0], moment or "time" in arguments[1:], definitions)
    if origin in (Union, types.UnionType):
        return _union([_type(each, moment, definitions) for each in arguments])
    if origin is Literal:
        return {"enum": list(arguments)}
    if moment and hint in (int, float):
        return dict(_TIME)
    if hint in _SIMPLE:
        return dict(_SIMPLE[hint])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return _definition(typing.cast(type, hint), definitions)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type(arguments[1], moment, definitions)}
    if isinstance(origin, type) and issubclass(origin, Sequence | AbstractSet):
        return _array(origin, arguments, moment, definitions)
    return {}  # `object`, `Any`: whatever JSON holds


def _array(
    origin: type, arguments: tuple[Any, ...], moment: bool, definitions: dict[str, Schema]
) -> Schema:
    if issubclass(origin, tuple) and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        items = [_type(each, moment, definitions) for each in arguments]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    return {"type": "array", "items": _type(arguments[0], moment, definitions)}


def _union(members: list[Schema]) -> Schema:
    unique = [each for at, each in enumerate(members) if each not in members[:at]]
    if len(unique) == 1:
        return unique[0]
    if all(set(each) == {"type"} for each in unique):
        return {"type": [each["type"] for each in unique]}
    return {"anyOf": unique}


def _described(row_type: type, field_name: str, schema: Schema) -> Schema:
    words = _docstrings(row_type).get(field_name)
    return {**schema, "description": words} if words else schema


def _docstrings(row_type: type) -> dict[str, str]:
    """Field name to the string literal that follows it; empty where there is no source."""
    found: dict[str, str] = {}
    for base in reversed(row_type.__mro__[:-1]):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, TypeError, SyntaxError):
            continue
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for statement, following in pairwise(body):
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
                and isinstance(following.value.value, str)
            ):
                found[statement.target.id] = inspect.cleandoc(following.value.value)
    return found
