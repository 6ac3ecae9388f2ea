from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.errors import BadDataError, UnreachableError
from dpctl.model import NumaNode
from dpctl.sources.sysfs import (
    kernel_device,
    numa_files,
    parse_numa,
    parse_pci,
    read_numa,
    read_pci,
    vfs_device,
)

DATA = Path(__file__).parent.parent / "data" / "sysfs"
NODE = "devices/system/node"


def test_a_captured_tree() -> None:
    tree = read_numa(str(DATA))
    assert tree.nodes == (
        NumaNode(
            numa_node=0,
            cpus=(0,),
            memory_total=12_288_000_000,
            memory_free=6_144_000_000,
            hugepages={"hugepages-1Gi": 0, "hugepages-2Mi": 0},
            distances=(10, 21),
        ),
        NumaNode(
            numa_node=1,
            cpus=(1,),
            memory_total=12_288_000_000,
            memory_free=6_144_000_000,
            hugepages={"hugepages-1Gi": 0, "hugepages-2Mi": 0},
            distances=(21, 10),
        ),
    )
    assert parse_numa(numa_files(str(DATA))) == tree


def test_this_machine() -> None:
    tree = read_numa("/sys")
    assert 0 in [node.numa_node for node in tree.nodes]
    assert set(tree.node_of_cpu()) >= os.sched_getaffinity(0)
    for node in tree.nodes:
        assert (node.memory_total or 0) >= (node.memory_free or 0) > 1 << 20
    assert set(read_pci("/sys")) == set(os.listdir("/sys/bus/pci/devices"))


def test_offline_and_sparse_nodes() -> None:
    tree = parse_numa(
        {
            f"{NODE}/online": b"0,8\n",
            f"{NODE}/node0/cpulist": b"0-3,8\n",
            f"{NODE}/node3/cpulist": b"4\n",
            f"{NODE}/node8/cpulist": b"\n",  # memory only
            f"{NODE}/node8/hugepages/hugepages-64kB/nr_hugepages": b"5\n",
            f"{NODE}/node8/hugepages/hugepages-16777216kB/nr_hugepages": b"1\n",
            f"{NODE}/node8/hugepages/odd/nr_hugepages": b"1\n",
            f"{NODE}/power/async": b"x",
        }
    )
    assert [(n.numa_node, n.cpus) for n in tree.nodes] == [(0, (0, 1, 2, 3, 8)), (8, ())]
    assert tree.nodes[1].hugepages == {"hugepages-64Ki": 5, "hugepages-16Gi": 1}
    assert tree.nodes[0].memory_total is None
    assert tree.nodes[0].distances == ()


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (f"{NODE}/online", b"0-99999999999"),
        (f"{NODE}/node0/cpulist", b"3-1"),
        (f"{NODE}/node0/cpulist", b"\x1b[2J"),
        (f"{NODE}/node0/distance", b"10 x"),
        (f"{NODE}/node0/hugepages/hugepages-2048kB/nr_hugepages", b"-1"),
        (f"{NODE}/node0/hugepages/hugepages-2048kB/nr_hugepages", b"9" * 5000),
    ],
)
def test_bad_numbers_name_their_file(path: str, data: bytes) -> None:
    with pytest.raises(BadDataError) as caught:
        parse_numa({f"{NODE}/node0/cpulist": b"0", path: data})
    assert path in caught.value.message
    assert len(caught.value.message) < 200


@given(
    st.dictionaries(
        st.sampled_from(
            [
                f"{NODE}/online",
                f"{NODE}/node0/cpulist",
                f"{NODE}/node0/meminfo",
                f"{NODE}/node0/distance",
                f"{NODE}/node0/hugepages/hugepages-2048kB/nr_hugepages",
            ]
        ),
        st.binary(max_size=40),
    )
)
def test_any_numa_files(files: dict[str, bytes]) -> None:
    with contextlib.suppress(BadDataError):
        assert all(node.numa_node == 0 for node in parse_numa(files).nodes)


def test_pci() -> None:
    found = parse_pci(
        {
            "bus/pci/devices/0000:3b:00.2/numa_node": b"1\n",
            "bus/pci/devices/0000:00:01.0/numa_node": b"-1\n",
            "bus/pci/devices/0000:00:02.0/class": b"x",
        }
    )
    assert found == {"0000:3b:00.2": 1, "0000:00:01.0": None}
    with pytest.raises(BadDataError, match=r"0000:3b:00\.2/numa_node"):
        parse_pci({"bus/pci/devices/0000:3b:00.2/numa_node": b"one"})


def device(root: Path, address: str, target: str) -> None:
    (root / "bus/pci/devices").mkdir(parents=True, exist_ok=True)
    (root / "bus/pci/devices" / address).symlink_to(target)


def test_pci_links_stay_inside(tmp_path: Path) -> None:
    root = tmp_path / "sys"
    (root / "devices/pci0000:00/0000:00:01.0").mkdir(parents=True)
    (root / "devices/pci0000:00/0000:00:01.0/numa_node").write_text("1\n")
    device(root, "0000:00:01.0", "../../../devices/pci0000:00/0000:00:01.0")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/numa_node").write_text("7\n")
    device(root, "0000:00:02.0", "../../../../outside")
    device(root, "0000:00:03.0", str(tmp_path / "outside"))
    assert read_pci(str(root)) == {"0000:00:01.0": 1}


def test_hostile_files(tmp_path: Path) -> None:
    node = tmp_path / NODE / "node0"
    node.mkdir(parents=True)
    (node / "cpulist").write_bytes(b"0" * (2 << 20))
    with pytest.raises(BadDataError, match="more than"):
        read_numa(str(tmp_path))
    (node / "cpulist").unlink()
    os.mkfifo(node / "cpulist")
    with pytest.raises(BadDataError, match="not a regular file"):
        read_numa(str(tmp_path))


def test_no_tree(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match=r"devices/system/node does not exist"):
        read_numa(str(tmp_path))
    with pytest.raises(UnreachableError, match=r"bus/pci/devices does not exist"):
        read_pci(str(tmp_path))


def test_the_device_of_a_superblock(tmp_path: Path) -> None:
    assert vfs_device("/proc") == kernel_device(os.stat("/proc").st_dev)
    assert vfs_device(str(tmp_path)) == kernel_device(os.stat(tmp_path).st_dev)
    with pytest.raises(UnreachableError):
        vfs_device(str(tmp_path / "none"))


def test_the_mounts_device_counts_not_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on btrfs, where `st_dev` is the subvolume's own."""
    mount = b"71 22 0:45 /sub /var rw - btrfs /dev/sda1 rw\n"
    answers = {
        "fdinfo": b"pos:\t0\nmnt_id:\t71\n",
        "mountinfo": b"7 1 8:1 / / rw - x x rw\n" + mount,
    }
    monkeypatch.setattr(
        "dpctl.sources.sysfs.read_limited",
        lambda path, _: answers["fdinfo" if "fdinfo" in path else "mountinfo"],
    )
    assert vfs_device(str(tmp_path)) == 45
    answers["mountinfo"] = b"711 22 0:45 / / rw\n"  # not in our list: another mount namespace
    assert vfs_device(str(tmp_path)) == kernel_device(os.stat(tmp_path).st_dev)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_overlays_are_told_by_their_own_superblock(tmp_path: Path) -> None:
    """In a container's root: what the socket table says is what `vfs_device` says."""
    code = f"""
import os, socket
from dpctl.sources.sock_diag import read_unix_sockets
from dpctl.sources.sysfs import vfs_device
os.chdir({str(tmp_path)!r})
with socket.socket(socket.AF_UNIX) as s:
    s.bind("merged/x.sock"); s.listen(1)
    row = next(r for r in read_unix_sockets() if r.inode == os.fstat(s.fileno()).st_ino)
    print(row.device == vfs_device("merged"), row.device == vfs_device("merged/x.sock"),
          row.file_inode == os.stat("merged/x.sock").st_ino & 0xFFFFFFFF)
"""
    for name in ("lower", "upper", "work", "merged"):
        (tmp_path / name).mkdir()
    mount = "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged"
    script = f'cd {tmp_path} && {mount} || exit 77; exec "$@"'
    answer = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    if answer.returncode == 77:
        pytest.skip("no overlay file system here")
    assert answer.stdout == "True True True\n", answer.stderr
