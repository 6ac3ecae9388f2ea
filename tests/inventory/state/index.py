"""The verdicts of tests/data/vectors/INDEX.md, taken with the kubelet's own readers."""

from __future__ import annotations

from tests.run import DATA

VECTORS = DATA / "vectors"
COLUMNS = (("1.37", 37, False), ("1.36", 36, False), ("1.36 gate", 36, True), ("1.34", 34, False))
"""Title, minor, and whether PodLevelResourceManagers is on. In 1.37 the gate changes nothing."""


def verdicts() -> dict[str, dict[str, bool]]:
    """File name to column to whether it is read and its number accepted."""
    everything = {path.stem for path in VECTORS.glob("*.json")}
    found: dict[str, dict[str, bool]] = {}
    rest: list[tuple[str, dict[str, bool]]] = []
    for line in (VECTORS / "INDEX.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 6 or not set(cells[2:]) <= {"+", "-"}:
            continue
        marks = {title: cell == "+" for (title, _, _), cell in zip(COLUMNS, cells[2:], strict=True)}
        if "*" in cells[0]:
            rest.append((cells[0].partition("*")[0], marks))
            continue
        first = ""
        for name in cells[0].split(", "):
            if name.startswith("-"):  # the end of the one before, changed
                name = next(n for n in _ends(first, name) if n in everything)
            else:
                first = name
            assert name in everything, name
            found[name] = marks
    for prefix, marks in rest:
        for name in everything:
            if name.startswith(prefix):
                found.setdefault(name, marks)
    assert set(found) == everything, everything - set(found)
    return found


def _ends(first: str, end: str) -> list[str]:
    """`mem-v1-none, -none-nullstate`: every way to put the end behind a part of the first."""
    parts = first.split("-")
    return ["-".join(parts[:count]) + end for count in range(len(parts), 0, -1)]
