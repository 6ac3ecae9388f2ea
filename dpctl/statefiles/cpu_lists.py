"""CPU lists as a kubelet reads and hashes them; pure.

`dpctl.cpuset` is for lists that people and the kernel write; here Go's rules and words count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dpctl.statefiles.checksum import spew_map

# A kubelet has no limit, and would fill its memory.
_LARGEST = 1 << 20
_ATOI = re.compile(r"[+-]?[0-9]+", re.ASCII)


def parse_cpu_list(text: str) -> tuple[tuple[int, ...], str | None]:
    """CPUs, ascending, and None; or none of them, and the error in Go's words."""
    if not text:
        return (), None
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        numbers = []
        for word in (first, last) if dash else (first,):
            if not _ATOI.fullmatch(word):
                return (), f'strconv.Atoi: parsing "{word}": invalid syntax'
            if len(word) > 20 or not -(2**63) <= int(word) < 2**63:
                return (), f'strconv.Atoi: parsing "{word}": value out of range'
            numbers.append(int(word))
        low, high = numbers[0], numbers[-1]
        if low > high:
            return (), f'invalid range "{part}" ({low} > {high})'
        if high >= _LARGEST or low <= -_LARGEST:
            return (), f'range "{part}" is larger than any machine'
        found.update(range(low, high + 1))
    return tuple(sorted(found)), None


def spew_cpu_set(cpus: Iterable[int]) -> bytes:
    """A `cpuset.CPUSet` inside a struct: `(cpuset.CPUSet){elems:(map[int]struct {})map[2:{}]}`."""
    elements = spew_map((b"%d" % cpu, b"{}") for cpu in sorted(cpus))
    return b"(cpuset.CPUSet){elems:(map[int]struct {})" + elements + b"}"
