"""One row in full, and the NUMA picture: the texts that a reader shows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpctl.columns import cell_text
from dpctl.documents import document, json_text, row_document
from dpctl.inventory.rows import ContainerRow, FailedPodRow
from dpctl.model import Snapshot
from dpctl.outputs.describe import describe_text
from dpctl.outputs.yaml_text import yaml_text
from dpctl.tui.facts import Facts
from dpctl.tui.pages import Page
from dpctl.tui.reader import Face

PodText = Callable[[Snapshot, Sequence[Any]], str]


def faces(page: Page, row: Any, pod_text: PodText | None) -> list[Face]:
    """Described, as YAML, as JSON: always of the same row in the reading at hand."""
    view = page.view
    assert view is not None
    key = view.row_key(row)

    def now(facts: Facts | None) -> Any | None:
        if facts is None:
            return None
        rows = facts.rows(page.name, page.make)
        return next((each for each in rows if view.row_key(each) == key), None)

    def described(facts: Facts | None, _room: int) -> str | None:
        found = now(facts)
        if found is None or facts is None:
            return None
        if isinstance(found, ContainerRow | FailedPodRow) and pod_text is not None:
            text = _pod(facts, found, pod_text)
            if text:
                return text
        entries = [
            (column.title, _value(column.title, column.get(found))) for column in view.columns
        ]
        return describe_text(entries)

    def data(facts: Facts, found: Any) -> Any:
        """A pod's rows are one thing, as in its description."""
        rows = _rows_of_pod(facts, found) if isinstance(found, ContainerRow) else ()
        if len(rows) > 1:
            return [row_document(row, view) for row in rows]
        return row_document(found, view)

    def as_yaml(facts: Facts | None, _room: int) -> str | None:
        found = now(facts)
        return None if found is None or facts is None else yaml_text(data(facts, found))

    def as_json(facts: Facts | None, _room: int) -> str | None:
        found = now(facts)
        return None if found is None or facts is None else json_text(data(facts, found), indent=2)

    return [Face("description", described), Face("YAML", as_yaml), Face("JSON", as_json)]


def _value(title: str, value: object) -> object:
    """Lists and sentences one a line; what is empty reads as in a cell."""
    if title in ("NOTE", "EVIDENCE") and isinstance(value, str):
        return tuple(value.split("; "))
    if isinstance(value, tuple | list) and value:
        return tuple(value)
    return cell_text(value, safe=False)


def _pod(facts: Facts, row: ContainerRow | FailedPodRow, pod_text: PodText) -> str:
    rows = _rows_of_pod(facts, row)
    return pod_text(facts.snapshot, rows) if rows else ""


def _rows_of_pod(facts: Facts, row: ContainerRow | FailedPodRow) -> list[ContainerRow]:
    from dpctl.inventory.containers import container_rows

    wanted = (row.namespace, row.pod, row.uid)
    return [
        found
        for found in facts.rows("containers", lambda f: container_rows(f.snapshot, f.joined))
        if (found.namespace, found.pod, found.uid) == wanted
    ]


def _picture(facts: Facts | None, room: int) -> str | None:
    from dpctl.picture.boxes import picture_text

    if facts is None:
        return None
    found = facts.topology
    return found if isinstance(found, str) else picture_text(found, columns=room)


def _picture_yaml(facts: Facts | None, _room: int) -> str | None:
    if facts is None:
        return None
    found = facts.topology
    return found if isinstance(found, str) else yaml_text(document(found))


def _picture_json(facts: Facts | None, _room: int) -> str | None:
    if facts is None:
        return None
    found = facts.topology
    return found if isinstance(found, str) else json_text(document(found), indent=2)


NUMA_FACES = (
    Face("picture", _picture),
    Face("YAML", _picture_yaml),
    Face("JSON", _picture_json),
)
