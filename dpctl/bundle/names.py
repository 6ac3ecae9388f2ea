"""Words that stand for names and addresses, the same ones wherever a name occurs. Pure.

What is a name is collected first (`redact`); then every text goes through one of the methods here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

# Names inside a longer word count when a dash or a dot parts them: `trainer` in `trainer-gpu-x`.
_TOKEN = re.compile(r"[A-Za-z0-9]+(?:[.-]+[A-Za-z0-9]+)*")
_PARTS = re.compile(r"([.-]+)")
_IPV4 = re.compile(r"(?<![0-9A-Za-z.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9A-Za-z]|\.[0-9])")
# One quantifier that gives back, behind a look at what must be there: linear on any text.
_IPV6 = re.compile(
    r"(?<![0-9A-Za-z:.-])(?=[0-9A-Fa-f]*+:[0-9A-Fa-f]*+:)[0-9A-Fa-f:.]{2,}(?![0-9A-Za-z:])"
)
# Whoever has such a name has it left in free text: the formats themselves say these words.
_WORDS = frozenset(
    {"cpu", "memory", "none", "static", "data", "kubelet", "pod", "pods", "node", "true", "false"}
)
# An environment's value of this length is looked for in other texts, too; `1` or `all` is not.
_TELLING = 6
_MOST_PARTS = 12


class Names:
    def __init__(self) -> None:
        self._words: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._known: dict[str, str] = {}
        self._firsts: set[str] = set()
        self._values: dict[str, str] = {}
        self._kept: set[str] = set()

    def keep(self, texts: Iterable[str]) -> None:
        """What stays as it is though an environment has it as a value: device IDs and the like."""
        self._kept.update(texts)

    def add(self, kind: str, texts: Iterable[str | None]) -> None:
        """Names of a kind (`pod`, `namespace`, …), to be replaced by `pod-1`, `pod-2`…"""
        for text in sorted({text for text in texts if text}):
            word = self.word(kind, text)
            if text not in _WORDS and _TOKEN.fullmatch(text):
                self._known.setdefault(text, word)
                self._firsts.add(_PARTS.split(text)[0])

    def add_values(self, texts: Iterable[str]) -> None:
        """Values of environments."""
        for text in sorted(set(texts) - self._kept):
            word = self.word("value", text)
            if len(text) < _TELLING:
                continue
            self._values[text] = word
            if _TOKEN.fullmatch(text) and text not in _WORDS:
                self._known.setdefault(text, word)
                self._firsts.add(_PARTS.split(text)[0])

    def word(self, kind: str, text: str) -> str:
        """For exactly this name, whatever else it is called like; the empty one stays."""
        if not text:
            return text
        found = self._words.get((kind, text))
        if found is None:
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            found = self._words[kind, text] = f"{kind}-{count}"
        return found

    def value(self, text: str) -> str:
        return self.word("value", text)

    def text(self, text: str) -> str:
        """With the names and addresses in it replaced."""
        return self.addresses(_TOKEN.sub(self._replace, text))

    def free(self, text: str) -> str:
        """The same for what a person or a program wrote: values of environments, too."""
        for value in sorted(self._values, key=len, reverse=True):
            if value in text:
                text = text.replace(value, self._values[value])
        return self.text(text)

    def device(self, text: str) -> str:
        """A device ID, an endpoint, a path of the machine: only addresses and node names."""
        if text in self._kept and not self._has_address(text):
            return text
        return self.addresses(_TOKEN.sub(self._replace_node, text))

    def tree(self, value: object) -> object:
        """Every text of a JSON value, keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.tree(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.tree(item) for item in value]
        return value

    def addresses(self, text: str) -> str:
        if "." in text:
            text = _IPV4.sub(self._address, text)
        if text.count(":") > 1:
            text = _IPV6.sub(self._address, text)
        return text

    def _has_address(self, text: str) -> bool:
        return self.addresses(text) != text

    def _address(self, match: re.Match[str]) -> str:
        text = match[0]
        bare = text.rstrip(":.")
        try:
            found = ip_address(bare)
        except ValueError:
            return text
        if found.is_loopback or found.is_unspecified:
            return text
        return self.word("address", bare) + text[len(bare) :]

    def _replace_node(self, match: re.Match[str]) -> str:
        return self._replace(match, only="node-")

    def _replace(self, match: re.Match[str], only: str = "") -> str:
        token = match[0]
        whole = self._known.get(token)
        if whole is not None and whole.startswith(only):
            return whole
        parts = _PARTS.split(token)
        if len(parts) == 1 or self._firsts.isdisjoint(parts):
            return token
        found: list[str] = []
        start = 0
        while start < len(parts):
            step = 1
            word = parts[start]
            if start % 2 == 0 and word in self._firsts:
                last = min(len(parts), start + 2 * _MOST_PARTS)
                for end in range(last - (last - start + 1) % 2, start, -2):
                    known = self._known.get("".join(parts[start:end]))
                    if known is not None and known.startswith(only):
                        word, step = known, end - start
                        break
            found.append(word)
            start += step
        return "".join(found)
