"""CPUs of /sys/devices/system/cpu."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpctl.errors import BadDataError, UnreachableError
from dpctl.model import CpuTree
from dpctl.sources.sysfs_cpus import parse_cpus, read_cpus

CPU = "devices/system/cpu"


def tree(root: Path) -> Path:
    """Two sockets with one core of two threads each, and one CPU that is off."""
    for cpu in range(4):
        folder = root / CPU / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{cpu % 2}\n")
        (folder / "core_id").write_text("0\n")  # unique within a socket only
    (root / CPU / "cpu4").mkdir()
    (root / CPU / "cpufreq").mkdir()
    (root / CPU / "online").write_text("0-3\n")
    (root / CPU / "offline").write_text("4\n")
    return root


def test_a_core_is_called_by_its_lowest_cpu(tmp_path: Path) -> None:
    assert read_cpus(str(tree(tmp_path))) == CpuTree(
        online=(0, 1, 2, 3),
        offline=(4,),
        cores={0: 0, 1: 1, 2: 0, 3: 1},
        sockets={0: 0, 1: 1, 2: 0, 3: 1},
    )


def test_no_such_tree(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="does not exist"):
        read_cpus(str(tmp_path))


@pytest.mark.parametrize(
    ("path", "data"),
    [(f"{CPU}/online", b"0-x"), (f"{CPU}/cpu0/topology/core_id", b"zero")],
)
def test_nonsense_is_named(path: str, data: bytes) -> None:
    with pytest.raises(BadDataError, match=path):
        parse_cpus({path: data})


def test_a_cpu_without_topology_has_no_core() -> None:
    found = parse_cpus({f"{CPU}/online": b"0-1\n", f"{CPU}/cpu0/topology/core_id": b"3"})
    assert (found.online, found.offline, found.cores, found.sockets) == ((0, 1), (), {}, {})


def test_links_out_of_the_root_are_not_followed(tmp_path: Path) -> None:
    root = tree(tmp_path / "sys")
    (tmp_path / "secret").write_text("77\n")
    inside = root / CPU / "cpu0/topology/core_id"
    inside.unlink()
    inside.symlink_to("../../../../../../../secret")
    assert 0 not in read_cpus(str(root)).cores
