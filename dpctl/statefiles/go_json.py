"""What Go's JSON package writes, and what it says to a text that it cannot read; pure.

Reading is `json_document`'s: as strict as Go, in words of our own.
"""

from __future__ import annotations

import json
import re

from dpctl.statefiles.checksum import spew_text

_GO_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_GO_ESCAPED = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def go_json(value: object) -> bytes:
    """JSON as Go's encoder writes it: no spaces, and some characters escaped that need not be.

    They occur only inside texts, so they may be replaced in the whole.
    """
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _GO_ESCAPED.sub(lambda match: _GO_ESCAPES.get(match[0], "\\ufffd"), written).encode()


def go_string(text: str) -> str:
    """A text as Go holds it: what is no UTF-8 (lone surrogates here) is U+FFFD."""
    return spew_text(text).decode()


def go_syntax_error(data: bytes) -> str | None:
    """What Go's decoder says to a text that is no JSON, where that is plain: it ends too early, or
    is something else from its first byte on. None: not known to the letter."""
    rest = data.lstrip(b" \t\r\n")
    if not rest:
        return "unexpected end of JSON input"
    if rest[:1] not in b'{["-0123456789tfn':
        return f"invalid character {_go_quoted(rest[0])} looking for beginning of value"
    try:
        json.loads(data.decode("utf-8", "replace"))
    except json.JSONDecodeError as e:
        early = e.pos >= len(e.doc.rstrip(" \t\r\n")) or e.msg.startswith("Unterminated string")
        return "unexpected end of JSON input" if early else None
    except (ValueError, RecursionError):
        pass
    return None


def _go_quoted(byte: int) -> str:
    if byte == ord("'"):
        return "'\\''"
    if byte in _GO_SHORT:
        return f"'{_GO_SHORT[byte]}'"
    if byte < 0x20 or byte == 0x7F:
        return f"'\\x{byte:02x}'"
    # Go takes the byte for a code point.
    return f"'{chr(byte)}'" if chr(byte).isprintable() else f"'\\u{byte:04x}'"


_GO_SHORT = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\"}
