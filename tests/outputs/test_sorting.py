from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from dpctl.columns import Column, View
from dpctl.errors import UsageError
from dpctl.outputs.sorting import sorted_rows
from tests.outputs.sample import GPUS, ROWS, Gpu

SOME = (ROWS[0], ROWS[1], ROWS[3])  # gpu-10, gpu-2, 显卡-0


def names(by: str | None, rows: tuple[Gpu, ...] = SOME) -> list[str]:
    return [row.name for row in sorted_rows(rows, GPUS, by)]


def test_by_name_in_natural_order() -> None:
    assert names(None) == ["gpu-2", "gpu-10", "显卡-0"]


@pytest.mark.parametrize("by", ["total", ".total", "{.total}", "TOTAL", "Total", "$.total"])
def test_by_number(by: str) -> None:
    assert names(by) == ["gpu-2", "显卡-0", "gpu-10"]


def test_by_quantity() -> None:
    assert names("capacity") == ["gpu-2", "显卡-0", "gpu-10"]  # 4, 16, 1k


def test_texts_in_natural_order_when_one_is_no_quantity() -> None:
    rows = (replace(ROWS[0], capacity="v10"), replace(ROWS[1], capacity="v9"))
    assert names("capacity", rows) == ["gpu-2", "gpu-10"]


def test_by_list_missing_first() -> None:
    assert names("numaNodes", ROWS) == [ROWS[2].name, "显卡-0", "gpu-2", "gpu-10"]


def test_a_title_sorts_by_the_value_and_not_by_its_text() -> None:
    assert names("AGE") == ["显卡-0", "gpu-10", "gpu-2"]  # -, 90s, 5m


def test_equal_values_stay_in_the_order_of_names() -> None:
    assert names("health") == ["gpu-10", "显卡-0", "gpu-2"]


@pytest.mark.parametrize("by", ["bogus", "{.items[*].name}", ".name.bogus", "TOTALS"])
def test_an_unknown_field_is_a_usage_error_that_lists_them(by: str) -> None:
    with pytest.raises(UsageError) as caught:
        names(by)
    assert f"a Gpu has no field {by!r}" in caught.value.message
    assert caught.value.hint is not None
    assert "columns: NAME, HEALTH" in caught.value.hint
    assert "fields: name, health, numaNodes" in caught.value.hint
    assert "seenAt" in caught.value.hint


def test_without_rows_the_row_type_tells() -> None:
    assert names("seenAt", ()) == []
    with pytest.raises(UsageError):
        names("bogus", ())


@pytest.mark.parametrize("by", ["seenAt", "annotations.some", "parts[*].partId", "changed"])
def test_a_field_that_is_null_or_empty_everywhere_is_known_all_the_same(by: str) -> None:
    assert names(by, (replace(ROWS[1], seen_at=None),)) == ["gpu-2"]


@dataclass(frozen=True)
class Mixed:
    value: object


def test_values_of_all_kinds_have_an_order() -> None:
    view: View[Mixed] = View("Mixed", (Column("V", lambda r: r.value, "value"),), lambda r: "x")
    values = [{"a": 1}, [2], "b", 3, None, True, "a", 2.5, [None, 1], [], {}]
    found = [row.value for row in sorted_rows(map(Mixed, values), view, "value")]
    assert found == [None, True, 2.5, 3, "a", "b", [], [None, 1], [2], {"a": 1}, {}]
