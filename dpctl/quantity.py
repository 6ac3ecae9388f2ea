"""Kubernetes quantities: `4`, `1k`, `500m`, `2Gi`, `1e3` to exact numbers. A leaf.

A quantity is kept as the string the API has; it becomes a number only to be compared or added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

_BINARY = {
    suffix: 1 << 10 * power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)
}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
"""Suffix to its power of ten."""
# "1e999999999" is legal text and must not become a number of a billion digits.
_MAX_EXPONENT = 40
_MAX_LENGTH = 64


def parse(text: str) -> Fraction:
    """The exact value. Raises ValueError for what the API would refuse, and for absurd lengths."""
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"quantity of {len(text)} characters")
    digits = text.rstrip("eEinumkKMGTP")
    suffix = text[len(digits) :]
    for mark in ("e", "E"):
        mantissa, found, exponent = text.partition(mark)
        if found and exponent.lstrip("+-").isdigit() and exponent.isascii():
            power = int(exponent)
            if abs(power) > _MAX_EXPONENT:
                raise ValueError(f"exponent out of range in {text!r}")
            return _number(mantissa, text) * _power_of_ten(power)
    if suffix in _BINARY:
        return _number(digits, text) * _BINARY[suffix]
    if suffix in _DECIMAL:
        return _number(digits, text) * _power_of_ten(_DECIMAL[suffix])
    raise ValueError(f"not a quantity: {text!r}")


def count(text: str | None) -> int | None:
    """A quantity as whole devices, rounded up as the kubelet does; None for None or nonsense."""
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= _MAX_LENGTH:
        return int(text)
    try:
        value = parse(text)
    except ValueError:
        return None
    return -(-value.numerator // value.denominator)


def size_text(size: int) -> str:
    """Bytes for people, rounded: `62.7Gi`, `512Mi`, `0`."""
    for suffix, unit in reversed(_BINARY.items()):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + suffix
    return str(size)


def _power_of_ten(power: int) -> Fraction:
    from fractions import Fraction

    digits = int("1" + "0" * abs(power))
    return Fraction(digits) if power >= 0 else Fraction(1, digits)


def _number(text: str, whole: str) -> Fraction:
    body = text[1:] if text[:1] in "+-" else text
    left, _, right = body.partition(".")
    if not (left or right) or not (left + right).isdigit() or not body.isascii():
        raise ValueError(f"not a quantity: {whole!r}")
    from fractions import Fraction  # costs 6 ms, and most quantities of devices are plain numbers

    return Fraction(text)
