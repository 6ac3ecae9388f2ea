"""Linux CPU (and NUMA node) lists: `0-3,8` to numbers and back. A leaf: imports nothing of ours."""

from __future__ import annotations

from collections.abc import Iterable

# A list is one line of a file that may be hostile: "0-99999999999" must not fill the memory.
_LARGEST = 1 << 20


def parse(text: str) -> tuple[int, ...]:
    """Numbers of a list such as `0-3,8`, ascending and distinct; empty text gives none.

    Raises ValueError for anything else, also for reversed ranges and numbers of 2**20 and more.
    """
    numbers: set[int] = set()
    for part in text.strip().split(","):
        if not part:
            if text.strip():
                raise ValueError(f"empty range in {text[:80]!r}")
            continue
        first, dash, last = part.partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            raise ValueError(f"not a CPU list: {text[:80]!r}")
        low, high = int(first), int(last) if dash else int(first)
        if low > high or high >= _LARGEST:
            raise ValueError(f"not a CPU range: {part[:40]!r}")
        numbers.update(range(low, high + 1))
    return tuple(sorted(numbers))


def render(numbers: Iterable[int]) -> str:
    """The shortest list for the numbers: `0-3,8`; empty text for none."""
    parts: list[str] = []
    ordered = sorted(set(numbers))
    start = 0
    for index, number in enumerate(ordered):
        if index + 1 == len(ordered) or ordered[index + 1] != number + 1:
            first = ordered[start]
            parts.append(f"{first}" if first == number else f"{first}-{number}")
            start = index + 1
    return ",".join(parts)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10
