"""Kubernetes quantities: `4`, `1k`, `500m`, `2Gi`, `1e3` to exact numbers. A leaf.

A quantity is kept as the string the API has; it becomes a number only to be compared or added.
"""

from __future__ import annotations

from fractions import Fraction

_BINARY = {
    suffix: 1 << 10 * power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)
}
_DECIMAL = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
}
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
            scale = Fraction(int("1" + "0" * abs(power)))
            return _number(mantissa, text) * (scale if power >= 0 else 1 / scale)
    if suffix in _BINARY:
        return _number(digits, text) * _BINARY[suffix]
    if suffix in _DECIMAL:
        return _number(digits, text) * _DECIMAL[suffix]
    raise ValueError(f"not a quantity: {text!r}")


def count(text: str | None) -> int | None:
    """A quantity as whole devices, rounded up as the kubelet does; None for None or nonsense."""
    if text is None:
        return None
    try:
        value = parse(text)
    except ValueError:
        return None
    return -(-value.numerator // value.denominator)


def _number(text: str, whole: str) -> Fraction:
    body = text[1:] if text[:1] in "+-" else text
    left, _, right = body.partition(".")
    if not (left or right) or not (left + right).isdigit() or not body.isascii():
        raise ValueError(f"not a quantity: {whole!r}")
    return Fraction(text)
