"""JSON-like documents as YAML, the same keys in the same order.

Written by ourselves: PyYAML takes 33 ms to load and 2.5 s for 10 000 rows, ten times that where
a lone surrogate keeps libyaml out; the tests hold this against what PyYAML reads back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Plain only what no reader takes for anything but text: PyYAML resolves by the rules of YAML 1.1,
# kubectl's and yq's readers by those of 1.2 (`1e3`, `0o7`, `1_000`, `yes` differ between them).
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*")
_WORDS = frozenset(["null", "true", "false", "yes", "no", "on", "off", "y", "n"])
_ESCAPED = re.compile(r"[^ !#-\[\]-~]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_LONGEST_KEY = 1000
"""YAML: a key in front of its colon has at most 1024 characters."""


def yaml_text(document: object) -> str:
    """Block style. Everything but printable ASCII is an escape in a quoted text: exact, lone
    surrogates too, and harmless on a terminal. Takes dict, list, str, int, float, bool, None."""
    lines: list[str] = []
    _block(document, "", "", lines)
    return "\n".join(lines) + "\n"


def _block(value: object, lead: str, indent: str, lines: list[str]) -> None:
    """Append `value`; its first line starts with `lead` (`- `, `key: `), others with `indent`."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            text = _scalar(key)
            if len(text) > _LONGEST_KEY:
                lines.append(f"{lead}? {text}")
                _nested(item, f"{indent}:", indent, lines)
            else:
                _nested(item, f"{lead}{text}:", indent, lines)
            lead = indent
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for item in value:
            _block(item, f"{lead}- ", f"{indent}  ", lines)
            lead = indent
    else:
        lines.append(lead + _scalar(value))


def _nested(item: object, lead: str, indent: str, lines: list[str]) -> None:
    """What follows a key: a mapping two deeper, a list as deep as its key (kubectl's look)."""
    if isinstance(item, Mapping) and item:
        lines.append(lead)
        _block(item, f"{indent}  ", f"{indent}  ", lines)
    elif isinstance(item, Sequence) and not isinstance(item, str) and item:
        lines.append(lead)
        _block(item, indent, indent, lines)
    else:
        lines.append(f"{lead} {_scalar(item)}")


def _scalar(value: object) -> str:
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        return f'"{_ESCAPED.sub(_escape, value)}"'
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # YAML 1.1 takes `1e+16` for a text: a number has its point.
        mantissa, exponent, rest = repr(value).partition("e")
        return f"{mantissa}{'' if '.' in mantissa else '.0'}{exponent}{rest}"
    if isinstance(value, int):
        return str(value)
    return "{}" if isinstance(value, Mapping) else "[]"


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
