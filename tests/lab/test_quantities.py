"""Stored forms: kubelet-facts §15."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl import quantity
from dpctl.lab.api_errors import ApiError
from dpctl.lab.quantities import canonical, canonical_status, validate_node


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("1000", "1k"),
        ("1500", "1500"),
        ("4", "4"),
        (4, "4"),
        ("0", "0"),
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("1024Ki", "1Mi"),
        ("67108864Ki", "64Gi"),
        ("1536Mi", "1536Mi"),
        ("1024", "1024"),
        ("1e3", "1e3"),
        ("-1", "-1"),
        ("2000000", "2M"),
        ("04", "4"),
    ],
)
def test_canonical(text: str | int, stored: str) -> None:
    assert canonical(text) == stored


@pytest.mark.parametrize("value", ["", "x", "1x", None, True, [], {}, "1 Gi"])
def test_refused(value: object) -> None:
    with pytest.raises(ApiError) as raised:
        canonical_status({"capacity": {"cpu": value}})
    assert raised.value.code == 422


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", "k", "M", "m", "Ki", "Mi", "Gi", "e3"]))
def test_value_is_kept_and_form_is_final(number: int, suffix: str) -> None:
    stored = canonical(f"{number}{suffix}")
    assert quantity.parse(stored) == quantity.parse(f"{number}{suffix}")
    assert canonical(stored) == stored


def test_allocatable_defaults_to_capacity_only_when_missing() -> None:
    assert canonical_status({"capacity": {"a/b": "1"}})["allocatable"] == {"a/b": "1"}
    assert canonical_status({"capacity": {"a/b": "1"}, "allocatable": {}})["allocatable"] == {}


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("vendor.example/gpu", "1500m", "must be an integer"),
        ("vendor.example/gpu", "-1", "must be greater than or equal to 0"),
        ("nodomain", "-1", "must be greater than or equal to 0"),
    ],
)
def test_validation(name: str, value: str, wrong: str) -> None:
    with pytest.raises(ApiError) as raised:
        validate_node({"metadata": {"name": "n"}, "status": {"capacity": {name: value}}})
    assert raised.value.code == 422
    assert wrong in raised.value.message
    assert raised.value.details["causes"][0]["field"] == f"status.capacity.{name}"


def test_not_validated() -> None:
    """Names, allocatable above capacity, native resources gone (kubelet-facts §11)."""
    status = {"capacity": {"bad_key": "1500m"}, "allocatable": {"Odd/Key": "9"}}
    validate_node({"metadata": {"name": "n"}, "status": status})
