from __future__ import annotations

from dpctl.columns import UNKNOWN, Column
from dpctl.outputs.describe import Lines, Part, describe_text

MOUNTS: list[Column[tuple[str, bool]]] = [
    Column("PATH", lambda r: r[0], "path"),
    Column("THERE", lambda r: r[1], "there"),
]


def test_the_look_of_kubectl_describe() -> None:
    text = describe_text(
        [
            ("Name", "train-0"),
            ("Namespace", "ml"),
            ("Node", None),
            ("Kind", UNKNOWN),
            ("Devices", ("gpu-0", "gpu-1")),
            ("Claims", ()),
            (
                "Containers",
                Part.of(
                    {
                        "main": {"CPUs": 0, "Environment": {"A": "1", "LONGER": ""}, "Empty": {}},
                        "side": Part(()),
                    }
                ),
            ),
            ("Mounts", Lines.table([("/dev/x", True), ("/lib", False)], MOUNTS)),
            ("None", Lines.table([], MOUNTS)),
        ]
    )
    assert text == (
        "Name:       train-0\n"
        "Namespace:  ml\n"
        "Node:       -\n"
        "Kind:       ?\n"
        "Devices:    gpu-0\n"
        "            gpu-1\n"
        "Claims:     -\n"
        "Containers:\n"
        "  main:\n"
        "    CPUs:   0\n"
        "    Environment:\n"
        "      A:       1\n"
        '      LONGER:  ""\n'
        "    Empty:  -\n"
        "  side:  -\n"
        "Mounts:\n"
        "  PATH     THERE\n"
        "  /dev/x   yes\n"
        "  /lib     no\n"
        "None:       -\n"
    )


def test_escapes_keys_values_and_lines() -> None:
    text = describe_text(
        [("k\n", "v\x1b"), ("deep", {"\u202e": ("a\r",)}), ("l", Lines(("x\ny",)))]
    )
    assert text == "k\\n:  v\\e\ndeep:\n  \\u{202e}:  a\\r\nl:\n  x\\ny\n"


def test_keys_may_repeat_and_be_wide() -> None:
    assert describe_text([("显", "1"), ("abc", "2"), ("显", "3")]) == (
        "显:   1\nabc:  2\n显:   3\n"
    )
