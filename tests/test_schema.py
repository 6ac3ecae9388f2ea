"""The schema against the documents it promises; a small validator, enough for what we write."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

from dpctl.documents import document, list_document
from dpctl.model import EnvRow
from dpctl.schema import json_schema
from tests.outputs.sample import META, ROWS, Gpu

SCHEMA = json_schema(Gpu, "Gpu")
TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")


def fits(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    if "$ref" in schema:
        return fits(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in schema:
        return any(fits(value, each, root) for each in schema["anyOf"])
    if "const" in schema:
        return bool(value == schema["const"])
    if "enum" in schema:
        return value in schema["enum"]
    kinds = schema.get("type")
    if kinds is None:
        return True
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if isinstance(value, bool) and "boolean" not in kinds:
        return False
    if not any(isinstance(value, TYPES[kind]) for kind in kinds):
        return False
    if isinstance(value, str) and schema.get("format") == "date-time":
        return RFC3339.fullmatch(value) is not None
    if isinstance(value, list):
        return all(fits(item, schema.get("items", {}), root) for item in value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        extra = schema.get("additionalProperties", {})
        if any(key not in value for key in schema.get("required", ())):
            return False
        if extra is False and set(value) - set(known):
            return False
        return all(fits(each, known.get(key, extra), root) for key, each in value.items())
    return True


def whole() -> dict[str, Any]:
    return list_document([document(row) for row in ROWS], "Gpu", META)


def test_our_documents_fit() -> None:
    assert fits(whole(), SCHEMA, SCHEMA)


@pytest.mark.parametrize("key", ["name", "numaNodes", "capacity", "seenAt"])
def test_a_document_without_a_field_does_not(key: str) -> None:
    found = whole()
    del found["items"][0][key]
    assert not fits(found, SCHEMA, SCHEMA)


@pytest.mark.parametrize(
    ("key", "value"),
    [("total", "4"), ("numaNodes", ["0"]), ("health", "?"), ("seenAt", 5), ("other", 1)],
)
def test_nor_one_with_the_wrong_value(key: str, value: object) -> None:
    found = whole()
    found["items"][0][key] = value
    assert not fits(found, SCHEMA, SCHEMA)


def test_says_what_the_source_says() -> None:
    gpu = SCHEMA["$defs"]["Gpu"]
    assert gpu["description"] == "A device of the tests."
    assert gpu["properties"]["numaNodes"]["description"] == "Ascending; null: no topology."
    assert gpu["required"] == list(document(ROWS[0]))
    assert "cost" not in gpu["properties"]
    assert "seconds" not in SCHEMA["$defs"]["SourceRow"]["properties"]
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_rows_of_the_model_have_one() -> None:
    schema = json_schema(EnvRow, "Setting")
    row = EnvRow("a", None, "default", None, ("x",))
    assert fits(list_document([document(row)], "Setting", META), schema, schema)


def test_a_type_that_holds_itself() -> None:
    schema = json_schema(Tree, "Tree")
    rows = [document(Tree((Tree(()),)))]
    assert fits(list_document(rows, "Tree", META), schema, schema)


@dataclass(frozen=True)
class Tree:
    trees: tuple[Tree, ...]
