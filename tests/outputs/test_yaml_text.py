"""Held against what PyYAML reads back: its C reader and its Python one."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dpctl.documents import document, list_document
from dpctl.outputs.yaml_text import yaml_text
from tests.outputs.sample import META, ROWS

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(alphabet="0123456789:-._+eExXob~nulTRUEyesoff =<>#&*!|%@`'\"[]{},?\n\t ")
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(DOCUMENTS)
def test_reads_back_as_it_was(value: Any) -> None:
    text = yaml_text(value)
    assert text.isascii()
    assert all(character >= " " or character == "\n" for character in text)
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if loader is not yaml.SafeLoader and "\\uD" in text:
            continue  # libyaml refuses lone surrogates
        read = yaml.load(text, Loader=loader)
        assert read == value
        assert json.dumps(read) == json.dumps(value)  # 1, 1.0 and True are equal, and differ


def test_undecodable_bytes_survive() -> None:
    found = list_document([document(row) for row in ROWS], "Gpu", META)
    text = yaml_text(found)
    assert "\\uDCFF" in text
    assert yaml.safe_load(text) == found
    assert list(yaml.safe_load(text)) == list(found)  # the order of JSON


@pytest.mark.parametrize(
    "text",
    [
        *("no", "NO", "y", "null", "~", "true", "1e3", "0o7", "1_000", "12:30:45", "0x1f", ".inf"),
        *("=", "<<", "2026-11-29", "- a", "a: b", "a #b", "", " a", "a ", "a:", "@x"),
        "0000:3b:00.2",
    ],
)
def test_texts_that_a_reader_could_take_for_something_else_are_quoted(text: str) -> None:
    assert yaml_text(text) == f'"{text}"\n'


@pytest.mark.parametrize("text", ["gpu-0", "vendor.example/gpu", "two words", "_a", "/dev/x"])
def test_plain_texts_stay_plain(text: str) -> None:
    assert yaml_text(text) == f"{text}\n"


def test_the_look_of_kubectl() -> None:
    value = {"items": [{"a": [1, [2, {"b": None}]], "c": {}}, []], "d": {"e": "x"}}
    assert yaml_text(value) == (
        "items:\n- a:\n  - 1\n  - - 2\n    - b: null\n  c: {}\n- []\nd:\n  e: x\n"
    )


@pytest.mark.parametrize("value", ["v", [1], {"a": 1}, []])
def test_keys_too_long_for_their_colon(value: Any) -> None:
    for whole in (
        {"k" * 2000: value, "z": 1},
        [{"k" * 2000: value, "z": 1}],
        {"o": {"k" * 2000: value}},
    ):
        assert yaml.safe_load(yaml_text(whole)) == whole
        assert yaml.load(yaml_text(whole), Loader=yaml.CSafeLoader) == whole
