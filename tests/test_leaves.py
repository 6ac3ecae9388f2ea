"""The leaves: CPU lists, quantities, names, and text made safe."""

from __future__ import annotations

import unicodedata
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl import cpuset, names, quantity, text


class TestCpuset:
    @given(st.sets(st.integers(0, 2000)))
    def test_round_trip(self, numbers: set[int]) -> None:
        assert cpuset.parse(cpuset.render(numbers)) == tuple(sorted(numbers))

    @pytest.mark.parametrize(
        ("written", "numbers"),
        [("", ()), ("0", (0,)), ("0-3,8\n", (0, 1, 2, 3, 8)), ("3,1-2,2", (1, 2, 3))],
    )
    def test_parse(self, written: str, numbers: tuple[int, ...]) -> None:
        assert cpuset.parse(written) == numbers

    @pytest.mark.parametrize("written", ["a", "1-", "-1", "3-1", "0-99999999", "1,,2", "1 2", "١"])
    def test_nonsense(self, written: str) -> None:
        with pytest.raises(ValueError):
            cpuset.parse(written)

    @given(st.text(max_size=30))
    def test_anything_is_numbers_or_a_value_error(self, written: str) -> None:
        try:
            numbers = cpuset.parse(written)
        except ValueError:
            return
        assert cpuset.parse(cpuset.render(numbers)) == numbers


class TestQuantity:
    @pytest.mark.parametrize(
        ("written", "value"),
        [
            ("4", 4),
            ("1k", 1000),
            ("1500m", Fraction(3, 2)),
            ("2Gi", 2 << 30),
            ("1e3", 1000),
            ("1E3", 1000),
            ("1E", 10**18),
            ("-1", -1),
            ("+.5", Fraction(1, 2)),
            ("5e-1", Fraction(1, 2)),
            ("1Ei", 1 << 60),
            ("100n", Fraction(1, 10**7)),
        ],
    )
    def test_parse(self, written: str, value: Fraction) -> None:
        assert quantity.parse(written) == value

    @pytest.mark.parametrize(
        "written",
        [
            "",
            "k",
            "1kk",
            "1 k",
            "0x1",
            "1e999999999",
            "1_000",
            "NaN",
            "1/2",
            "١",
            "9" * 65,
            "1e+-3",
        ],
    )
    def test_nonsense(self, written: str) -> None:
        with pytest.raises(ValueError):
            quantity.parse(written)
        assert quantity.count(written) is None

    @pytest.mark.parametrize(
        ("written", "devices"), [("1500m", 2), ("1k", 1000), ("0", 0), ("1m", 1)]
    )
    def test_devices_are_rounded_up(self, written: str, devices: int) -> None:
        assert quantity.count(written) == devices

    @given(st.text(max_size=20))
    def test_anything_is_a_number_or_a_value_error(self, written: str) -> None:
        count = quantity.count(written)
        assert count is None or isinstance(count, int)


class TestNames:
    """The kubelet's own verdicts (kubelet-facts §3.1)."""

    @pytest.mark.parametrize(
        "name",
        [
            "vendor.example/gpu",
            "vendor/gpu",
            "vendor.example/GPU_1.a",
            "nvidia.com/mig-1g.5gb",
            "kubernetes.io.example/x",
            f"{'a' * 244}/x",
            f"a/{'x' * 63}",
        ],
    )
    def test_extended(self, name: str) -> None:
        assert names.is_extended(name)

    @pytest.mark.parametrize(
        "name",
        [
            "gpu",
            "hugepages-2Mi",
            "kubernetes.io/x",
            "foo.kubernetes.io/x",
            "xkubernetes.io/y",
            "requests.vendor.example/gpu",
            "Vendor.example/gpu",
            "vendor_x/gpu",
            "a.b/c/d",
            "/gpu",
            "vendor.example/",
            "vendor.example/-x",
            f"a/{'x' * 64}",
            f"{'a' * 245}/x",
            "a/x\n",
        ],
    )
    def test_not_extended(self, name: str) -> None:
        assert not names.is_extended(name)

    @pytest.mark.parametrize(
        ("name", "native"),
        [
            ("cpu", True),
            ("ephemeral-storage", True),
            ("hugepages-1Gi", True),
            ("attachable-volumes-csi-x", True),
            ("nodomain", False),
            ("vendor.example/cpu", False),
        ],
    )
    def test_native(self, name: str, native: bool) -> None:
        assert names.is_native(name) is native


class TestText:
    @given(st.text(alphabet=st.characters(), max_size=60))
    def test_escaped_text_cannot_move_a_cursor(self, raw: str) -> None:
        for character in text.escape(raw):
            assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")

    @pytest.mark.parametrize(
        ("raw", "shown"),
        [
            ("gpu-0", "gpu-0"),
            ("\x1b[2Jgone", "\\e[2Jgone"),
            ("a\nb", "a\\nb"),
            ("\u202eevil", "\\u{202e}evil"),
            ("\udcff", "\\xff"),
            ("\x9b1m", "\\x9b1m"),
            ("Gerät 世界", "Gerät 世界"),
        ],
    )
    def test_escape(self, raw: str, shown: str) -> None:
        assert text.escape(raw) == shown

    def test_natural_order(self) -> None:
        ordered = ["gpu", "gpu-2", "gpu-010", "gpu-10", "x1y2", "x1y10"]
        assert (
            sorted(["x1y10", "gpu-10", "x1y2", "gpu-010", "gpu-2", "gpu"], key=text.natural_key)
            == ordered
        )

    @given(st.lists(st.text(max_size=12), max_size=6))
    def test_natural_order_is_total(self, words: list[str]) -> None:
        ordered = sorted(words, key=text.natural_key)
        backwards = words[::-1]
        assert ordered == sorted(backwards, key=text.natural_key)
        assert all(
            a == b or text.natural_key(a) != text.natural_key(b) for a in words for b in words
        )

    def test_a_number_of_64_kib_is_sorted(self) -> None:
        assert sorted(["9" * 65536, "1" * 65537], key=text.natural_key)[0][0] == "9"

    @pytest.mark.parametrize(
        ("name", "patterns", "matches"),
        [
            ("nvidia.com/gpu", [], True),
            ("nvidia.com/gpu", ["nvidia.com/*"], True),
            ("nvidia.com/gpu", ["*"], True),
            ("nvidia.com/gpu", ["nvidia.com"], False),
            ("nvidia.com/gpu", ["x", "*gpu"], True),
            ("Nvidia.com/gpu", ["nvidia*"], False),
        ],
    )
    def test_globs(self, name: str, patterns: list[str], matches: bool) -> None:
        assert text.matches_any(name, patterns) is matches

    def test_width(self) -> None:
        assert (text.width("gpu"), text.width("世界"), text.width("e\u0301")) == (3, 4, 1)
