"""Files with known checksums, and what tests of several formats do to them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

DATA = Path(__file__).parent.parent / "data"

# Everything that a JSON text of Go can carry, hostile ones often.
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(["", " ", "a]b:c map[x] {y}", "<nil>", "\0", "\u2028", "<&>", '"\\']),
)

# Keys of the formats; those of maps (pods, containers, NUMA nodes) are values like any other.
_KEYS = (
    "policyName|defaultCpuSet|entries|podEntries|baselines|baseline|cpuSet|checksum|data"
    "|dataChecksum|machineState|numberOfAssignments|memoryMap|cells|total|systemReserved"
    "|allocatable|reserved|free|numaAffinity|type|size|memoryBlocks|Data|Checksum|kind"
    "|apiVersion|ClaimInfoStateList|ClaimUID|ClaimName|Namespace|PodUIDs|DriverState"
    "|Devices|PoolName|DeviceName|ShareID|RequestNames|CDIDeviceIDs|skipNodeOperations"
    "|ContainerResources|limits|requests|PodLevelResources|EmptyDirVolumeLimits"
)
_KEY = re.compile(rb'"(' + _KEYS.encode() + rb')\\?":')


def names(prefix: str) -> list[str]:
    """Names of the files whose name begins so."""
    return sorted(path.stem for path in (DATA / "vectors").glob(f"{prefix}-*.json"))


def read(name: str) -> bytes:
    return (DATA / "vectors" / f"{name}.json").read_bytes()


def reindented(data: bytes) -> bytes:
    """The outer document in another layout; the texts inside of it are what they were."""
    return b" \n" + json.dumps(json.loads(data), indent=3).encode() + b"\n"


def tampered_values(data: bytes) -> Iterator[tuple[bytes, bool]]:
    """The file with one letter or digit of a value changed, for each of them; and whether it stands
    inside the text of `data` (or its number)."""
    keys = [match.span(1) for match in _KEY.finditer(data)]
    inner = data.find(b'"data":')
    for at in range(len(data)):
        if any(start <= at < end for start, end in keys):
            continue
        old = data[at : at + 1]
        if not old.isalnum() or data[at - 1 : at] == b"\\" or _is_literal(data, at):
            continue
        # Digits become digits, so that the text stays a number without a zero in front.
        new = (b"7" if old != b"7" else b"8") if old.isdigit() else (b"q" if old != b"q" else b"z")
        yield data[:at] + new + data[at + 1 :], 0 <= inner < at


def _is_literal(data: bytes, at: int) -> bool:
    """`null`, which another letter would make no JSON at all."""
    return b"null" in data[max(at - 3, 0) : at + 4]
