"""Quantities as the API server stores them, and what it refuses. Pure.

`1000` is stored as `1k`, `1024Ki` as `1Mi` (kubelet-facts §15): a JSON Patch `test` of what the
user typed then fails, which is why this matters.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpctl import names, quantity
from dpctl.lab.api_errors import Json, invalid, unprocessable

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = (("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3))
_INTEGERS = frozenset({"pods"})


def canonical(value: Any) -> str:
    """The stored form of a quantity. Raises ValueError."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        raise ValueError("quantities must be strings or numbers")
    return _canonical_text(text)


@lru_cache(4096)  # every status write passes all of a Node's amounts, the same few again and again
def _canonical_text(text: str) -> str:
    number = quantity.parse(text)
    if text[-1:] == "i" and abs(number) >= 1024:
        return _binary(number)
    mantissa = text.rstrip("numkKMGTPEi")
    if "e" in mantissa.lower() and number.denominator == 1:
        return _exponent(int(number))
    return _decimal(number)


def _binary(number: Fraction) -> str:
    power = 0
    while power + 1 < len(_BINARY) and (number / 1024).denominator == 1 and number:
        number /= 1024
        power += 1
    # Not whole: the reading rounds up to the next whole unit.
    return f"{-(-number.numerator // number.denominator)}{_BINARY[power]}"


def _decimal(number: Fraction) -> str:
    if not number:
        return "0"
    for suffix, power in (*_DECIMAL, ("u", -6), ("n", -9)):
        scaled = number / Fraction(10) ** power
        if scaled.denominator == 1:
            return f"{scaled.numerator}{suffix}"
    return f"{-(-(number * 10**9).numerator // (number * 10**9).denominator)}n"


def _exponent(number: int) -> str:
    power = 0
    while number and number % 1000 == 0:
        number //= 1000
        power += 3
    return f"{number}e{power}" if power else str(number)


def canonical_status(status: Json) -> Json:
    """A node status with its quantities in stored form, allocatable defaulted from capacity.

    Raises ApiError 422 for what cannot be read.
    """
    result = dict(status)
    for part in ("capacity", "allocatable"):
        if isinstance(result.get(part), dict):
            try:
                result[part] = {key: canonical(value) for key, value in result[part].items()}
            except ValueError:
                raise unprocessable() from None
    if result.get("capacity") and result.get("allocatable") is None:
        result["allocatable"] = dict(result["capacity"])
    return result


def validate_node(node: Json) -> None:
    """What the API server checks of a node's resources, and no more: key names, allocatable above
    capacity and missing native resources pass (kubelet-facts §11). Raises ApiError 422."""
    causes: list[tuple[str, str, str]] = []
    for part in ("capacity", "allocatable"):
        for key, value in (node.get("status", {}).get(part) or {}).items():
            number = quantity.parse(value)
            field = f"status.{part}.{key}"
            if number < 0:
                causes.append((field, value, "must be greater than or equal to 0"))
            if number.denominator != 1 and (names.is_extended(key) or key in _INTEGERS):
                causes.append((field, value, "must be an integer"))
    if causes:
        raise invalid("Node", str(node.get("metadata", {}).get("name")), causes)
