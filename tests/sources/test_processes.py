from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.env import Env, Settings, find_env
from dpctl.errors import DeniedError, UnreachableError, UsageError
from dpctl.sources.proc import device_holders, read_process
from dpctl.sources.processes import (
    find_holders,
    list_pids,
    parse_cgroup,
    split_arguments,
    telling_environment,
)
from tests.sources.peer import peer

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
UID = "4f1d3c0a-9b1e-4c56-8d7a-0123456789ab"
STATIC = "0123456789abcdef0123456789abcdef"
CID = "c0ffee00" * 8


@pytest.fixture
def env() -> Env:
    return find_env(Settings(), {"HOME": "/nonexistent"}, scan=False)


@pytest.mark.parametrize(
    ("path", "uid", "container"),
    [
        # cgroupfs
        (f"/kubepods/burstable/pod{UID}/{CID}", UID, CID),
        (f"/kubepods/pod{UID}/{CID}", UID, CID),  # guaranteed
        (f"/kubepods/besteffort/pod{STATIC}/{CID}", STATIC, CID),
        (f"/kubepods/burstable/pod{UID}", UID, None),
        (f"/custom/kubepods/burstable/pod{UID}/{CID}/init.scope", UID, CID),
        # systemd
        (
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
            f"{UID.replace('-', '_')}.slice/cri-containerd-{CID}.scope",
            UID,
            CID,
        ),
        (
            f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/crio-{CID}.scope/container",
            UID,
            CID,
        ),
        (
            f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/crio-conmon-{CID}.scope",
            UID,
            CID,
        ),
        (
            f"/kubepods.slice/x/kubepods-besteffort-pod{STATIC}.slice/docker-{CID}.scope",
            STATIC,
            CID,
        ),
        # the runtime without systemd, the kubelet with it
        (
            f"/system.slice/containerd.service/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
            f":cri-containerd:{CID}",
            UID,
            CID,
        ),
        # kind, and kind inside a cluster: the inner pod
        (
            f"/docker/{'d' * 64}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort."
            f"slice/kubelet-kubepods-besteffort-pod{UID.replace('-', '_')}.slice/"
            f"cri-containerd-{CID}.scope",
            UID,
            CID,
        ),
        (f"/kubepods/pod{STATIC}/{'d' * 64}/kubelet/kubepods/pod{UID}/{CID}", UID, CID),
        (f"/../../pod{UID}/{CID}", UID, CID),  # seen from another cgroup namespace
        # no pods
        (f"/docker/{CID}", None, CID),
        (f"/system.slice/docker-{CID}.scope", None, CID),
        ("/system.slice/kubelet.service", None, None),
        ("/podruntime.slice/kubelet.service", None, None),
        ("/machine.slice/libpod-conmon-abc.scope", None, None),
        (f"/machine.slice/libpod-{CID}.scope", None, CID),
        ("/user.slice/pod../x", None, None),
        ("/", None, None),
    ],
)
def test_cgroups(path: str, uid: str | None, container: str | None) -> None:
    assert parse_cgroup(f"0::{path}\n".encode()) == (uid, container)
    v1 = f"12:cpuset:/\n3:memory:{path}\n1:name=systemd:{path}\n0::/\n"
    assert parse_cgroup(v1.encode()) == (uid, container)


@given(st.binary(max_size=300))
def test_any_cgroup(data: bytes) -> None:
    for hostile in (data, b"0::/kubepods/pod" + data):
        uid, container = parse_cgroup(hostile)
        assert uid is None or (uid.isascii() and len(uid) <= 64)
        assert container is None or len(container) == 64


def test_arguments() -> None:
    assert split_arguments(b"") == ()
    assert split_arguments(b"a\0b c\0\0") == ("a", "b c", "")
    assert split_arguments(b"\xff\0") == ("\udcff",)
    assert len(split_arguments(b"a\0" * 9000)) == 4096


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/gpu,vendor.example/x_1.a", True),
        ("/var/lib/kubelet/device-plugins/gpu.sock", True),
        ("unix:///run/x.sock", True),
        ("/usr/bin:/bin", False),
        ("https://vendor.example/x", False),
        ("hunter2", False),
        ("c2VjcmV0/K7MDENGbPxRfiCYEXAMPLEKEY", False),
        ("kubernetes.io/x", False),
        ("", False),
        ("/" + "x" * 5000 + ".sock", False),
    ],
)
def test_only_telling_environment_is_kept(value: str, kept: bool) -> None:
    data = b"SECRET=hunter2\0broken\0=x\0NAME=" + value.encode() + b"\0"
    assert telling_environment(data) == ({"NAME": value} if kept else {})


def test_a_real_process(tmp_path: Path) -> None:
    before = time.time()
    child = subprocess.Popen(
        ["sleep", "60"], env={"RESOURCE": "a.example/b", "TOKEN": "t", "S": "/x/y.sock"}
    )
    try:
        while (process := read_process("/proc", child.pid)) is None or process.command != "sleep":
            time.sleep(0.01)  # still on its way through exec
        assert process.arguments == ("sleep", "60")
        assert process.environment == {"RESOURCE": "a.example/b", "S": "/x/y.sock"}
        assert process.started is not None
        assert abs(process.started - before) < 2  # btime counts whole seconds
    finally:
        child.kill()
        child.wait()
    assert read_process("/proc", child.pid) is None


def test_a_name_with_brackets_does_not_shift_the_start(tmp_path: Path) -> None:
    base = tmp_path / "9"
    base.mkdir()
    (base / "comm").write_text("a) R (\n")
    (base / "stat").write_text("9 (a) R () S " + " ".join(str(i) for i in range(4, 40)) + "\n")
    (tmp_path / "stat").write_text("cpu 1\nbtime 1000\n")
    process = read_process(str(tmp_path), 9)
    assert process is not None
    assert process.command == "a) R ("
    assert process.started == 1000 + 22 / os.sysconf("SC_CLK_TCK")


def test_holders_of_sockets(tmp_path: Path) -> None:
    with peer() as one, peer() as two:
        inode = one("listen", str(tmp_path / "s"))
        other = two("connect", str(tmp_path / "s"))
        pids = list_pids("/proc")
        assert find_holders("/proc", pids, {inode, other, 1}) == {
            inode: (one.pid,),
            other: (two.pid,),
        }
        assert find_holders("/proc", [*pids, 2**22 + 1], set()) == {}


def test_no_proc(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError):
        list_pids(str(tmp_path / "none"))


def test_who_has_a_device_open(env: Env, tmp_path: Path) -> None:
    with peer() as one, peer() as two:
        assert one("open", "/dev/full")
        holders = device_holders(env, "/dev/full")
        pids = [process.pid for process in holders.processes]
        assert one.pid in pids
        assert two.pid not in pids
        assert os.getpid() not in pids


@needs_root
def test_a_device_by_its_number_not_its_name(env: Env, tmp_path: Path) -> None:
    """A container has the node under another name, or in a /dev of its own, even deleted."""
    renamed = tmp_path / "null"
    os.mknod(renamed, 0o600 | 0o020000, os.makedev(1, 7))  # /dev/full by number
    with peer() as one:
        one("open", str(renamed))
        assert one.pid not in [p.pid for p in device_holders(env, "/dev/null").processes]
        assert one.pid in [p.pid for p in device_holders(env, str(renamed)).processes]
        renamed.rename(tmp_path / "full")
        assert one.pid in [p.pid for p in device_holders(env, "/dev/full").processes]
        (tmp_path / "full").unlink()
        assert one.pid in [p.pid for p in device_holders(env, "/dev/full").processes]


@needs_root
def test_processes_that_may_not_be_looked_at_are_counted() -> None:
    code = """
import os
from dpctl.env import Settings, find_env
from dpctl.sources.proc import device_holders
env = find_env(Settings(), {"HOME": "/nonexistent"}, scan=False)
device_holders(env, "/dev/null")  # loads what loads late
os.setuid(65534)
print(device_holders(env, "/dev/null").denied)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert int(answer.stdout) > 0, answer.stderr


def test_what_is_no_device(env: Env, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="no device node"):
        device_holders(env, str(tmp_path / "file"))
    with pytest.raises(UnreachableError):
        device_holders(env, str(tmp_path / "none"))
    with pytest.raises((UnreachableError, DeniedError)):
        device_holders(env, "/dev/\0")


@needs_root
def test_a_device_below_the_host_root(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    os.mknod(tmp_path / "dev/gpu-below", 0o600 | 0o020000, os.makedev(1, 7))
    env = find_env(Settings(host_root=str(tmp_path)), {"HOME": "/nonexistent"}, scan=False)
    with peer() as one:
        one("open", "/dev/full")
        assert one.pid in [p.pid for p in device_holders(env, "/dev/gpu-below").processes]
