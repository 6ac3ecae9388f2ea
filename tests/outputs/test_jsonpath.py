"""The dialect against what client-go printed for the same templates, and against itself."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.errors import UsageError
from dpctl.outputs.jsonpath_parse import parse_path, parse_template

RECORD = json.loads(
    (Path(__file__).parent.parent / "golden/output/jsonpath-client-go.json").read_text()
)
DOCUMENT = RECORD["document"]

# Where we mean to differ from client-go, and what we print there.
DIFFERENT = {
    "plain": "",  # no brace: a path
    "{.}": json.dumps(DOCUMENT, separators=(",", ":")),
    "{.['kind']}": "ResourceList",
    # JSON numbers are all floats in client-go's eyes, and do not compare with whole ones
    "{.items[?(@.total>3)].name}": "a c d",
    "{.items[?(@.total>=4)].name}": "a c d",
    "{.items[?(@.total<4)].name}": "b",
    "{.items[?(@.total<=0)].name}": "b",
    "{.items[?(@.total==4)].name}": "a",
    "{.items[?(@.total!=4)].name}": "b c d",
}


def rendered(template: str, document: Any = DOCUMENT) -> str:
    return parse_template(template).render(document, safe=False)


@pytest.mark.parametrize("case", RECORD["cases"], ids=lambda case: str(case["template"]))
def test_prints_what_client_go_prints(case: dict[str, str]) -> None:
    template = case["template"]
    if template in DIFFERENT:
        assert rendered(template) == DIFFERENT[template]
        assert case.get("out") != DIFFERENT[template], "no difference any more: drop the entry"
    elif "error" in case:
        with pytest.raises(UsageError, match=r"^jsonpath: "):
            rendered(template)
    else:
        assert rendered(template) == case["out"]


ROWS = {
    "items": [
        {"name": "gpu", "m": {"vendor.example/gpu": "4", "a,b": 1, "q]": 2}, "holder": None},
        {"name": "nic", "m": {}, "holder": "p"},
    ]
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (".items[*].name", "gpu nic"),
        ("items[*].name", "gpu nic"),
        ("$.items[0].name", "gpu"),
        ("{.items[0].m['vendor.example/gpu']}", "4"),  # exactly the key, unlike client-go
        ('{.items[0].m["vendor.example/gpu"]}', "4"),
        ("{.items[0].m['a,b']}", "1"),
        ("{.items[0].m['q]']}", "2"),
        ("{.items[?(@.holder)].name}", "nic"),  # null is missing
        ('{.items[?(@.holder!="x")].name}', "nic"),
        ("{.items[0].holder}", "null"),
        ('{.items[?(@.m["vendor.example/gpu"]=="4")].name}', "gpu"),
        ("{.items[0].holder[?(@.a==1)]}", ""),
        ("{range .items[*]}{range .m.*}{@};{end}|{end}", "4;1;2;||"),
    ],
)
def test_more_than_client_go(template: str, text: str) -> None:
    assert rendered(template, ROWS) == text


@pytest.mark.parametrize(
    ("template", "position", "words"),
    [
        ("{.items[0}", 8, "[ without its ]"),
        ("{.a}{.items[x]}", 13, "'x' is no index"),
        ("{.a", 1, "{ without its }"),
        ("x{.b}{end}", 6, "{end} without a {range}"),
        ('{"abc}', 2, "a quote that does not end"),
        ("{.items[?(@.a=='x')}", 8, "a filter ends with )]"),
        ("{.items[?(@.a==)]}", 16, "nothing to compare with after =="),
        ("{....a}", 4, "`..` twice"),
        ("{nme}", 2, "unexpected word 'nme' (a field is .nme"),
        ("{.a[0:1:0]}", 5, "a step must be above 0"),
        (".items[x]", 8, "'x' is no index"),
        ("items[x]", 7, "'x' is no index"),
        (" ", 2, "nothing to look for"),
    ],
)
def test_errors_name_the_place(template: str, position: int, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_template(template)
    assert words in caught.value.message
    assert f"at character {position} of {template!r}" in caught.value.message
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("for example: -o jsonpath=")


def test_mixed_comparison_says_how_to_write_it() -> None:
    with pytest.raises(UsageError, match="== cannot compare a number with a text") as caught:
        rendered('{.items[?(@.total=="4")].name}')
    assert "leave a number bare" in str(caught.value.hint)


def test_escapes_the_documents_text_only() -> None:
    template = parse_template('{range .items[*]}{.}{"\\n\\u001b"}{end}')
    document = {"items": ["\x1b[31m\n\udcff"]}
    assert template.render(document, safe=True) == "\\e[31m\\n\\xff\n\x1b"
    assert template.render(document, safe=False) == "\x1b[31m\n\udcff\n\x1b"


def test_nesting_and_length_are_bounded() -> None:
    with pytest.raises(UsageError):
        parse_template("{.a" + "[?(@.a" * 5000)
    with pytest.raises(UsageError):
        parse_template("{range .a}" * 5000)
    with pytest.raises(UsageError):
        parse_template("{" + ".a" * 50_000 + "}")
    with pytest.raises(UsageError):
        parse_path("['" * 1000)


KEYS = st.text(min_size=1, max_size=6).filter(lambda key: "\\" not in key)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def escaped(key: str) -> str:
    return re.sub(r"(.)", r"\\\1", key, flags=re.DOTALL)


def walk(value: Any, steps: list[str | int]) -> list[Any]:
    """The reference: one step after the other, nothing where there is nothing."""
    for step in steps:
        if isinstance(step, str) and isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(step, int) and isinstance(value, list) and value:
            value = value[step % len(value)]
        else:
            return []
    return [value]


@given(JSON, st.data())
def test_simple_paths_find_what_walking_finds(document: Any, data: st.DataObject) -> None:
    text, steps, value = "", [], document
    for _ in range(data.draw(st.integers(1, 4))):
        if isinstance(value, list) and value:
            step: str | int = data.draw(st.integers(0, len(value) - 1))
            text += f"[{step}]"
        else:
            known = list(value) if isinstance(value, dict) else []
            step = data.draw(st.sampled_from(known) | KEYS if known else KEYS)
            if isinstance(value, list):
                break
            text += f".{escaped(step)}"
        steps.append(step)
        found = walk(document, steps)
        value = found[0] if found else None
    if not steps:
        return
    for written in (text, f"{{{text}}}", f" {{ {text} }} "):
        assert parse_path(written).find(document) == walk(document, steps)


@given(st.text(alphabet="{}[]().,'\"?@$*:-=<>!ab01 \\\n", max_size=30))
def test_nonsense_is_a_usage_error_and_nothing_else(template: str) -> None:
    with contextlib.suppress(UsageError):
        rendered(template, ROWS)
