from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpctl.env.kubelets import (
    KubeletProcess,
    find_kubelet_processes,
    kubelet_process,
    node_name_of,
    parse_flags,
    root_of,
)
from tests.env.tree import Tree

PEM = Path(__file__).parent.parent / "data" / "env" / "kubelet-client-current.pem"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "host")


def found(tree: Tree) -> tuple[KubeletProcess, ...]:
    return find_kubelet_processes(tree.at("/proc"), str(tree.root))


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        (["--a=b"], {"a": "b"}),
        (["--root-dir", "/x", "--v=2"], {"root-dir": "/x", "v": "2"}),
        (["--root_dir=/x"], {"root-dir": "/x"}),
        (["--root-dir=/x", "--root-dir=/y"], {"root-dir": "/y"}),
        (["--quiet", "--a=b=c"], {"quiet": "true", "a": "b=c"}),
        (
            ["--feature-gates=A=true", "--feature-gates=B=false"],
            {"feature-gates": "A=true,B=false"},
        ),
        (["--", "--a=b"], {}),
        (["word", "-x", "--a="], {"a": ""}),
        (
            ["--kubelet-arg=root-dir=/k", "--kubelet-arg", "feature-gates=A=true"],
            {"root-dir": "/k", "feature-gates": "A=true"},
        ),
        (["--kubelet-extra-args=--root-dir=/k --v 3"], {"root-dir": "/k", "v": "3"}),
    ],
)
def test_flags(arguments: list[str], flags: dict[str, str]) -> None:
    assert parse_flags(arguments) == flags


@pytest.mark.parametrize(
    ("arguments", "kind", "root"),
    [
        (["/usr/bin/kubelet"], "kubelet", "/var/lib/kubelet"),
        (["kubelet", "--root-dir=/data/kubelet/"], "kubelet", "/data/kubelet"),
        (["/hyperkube", "kubelet", "--root-dir", "/x"], "kubelet", "/x"),
        (["/usr/local/bin/k3s server"], "k3s", None),  # it overwrites its own command line
        (["k3s-agent", "--kubelet-arg=root-dir=/k"], "k3s", "/k"),
        (["/usr/local/bin/k3s", "agent"], "k3s", None),
        (["/usr/bin/microshift", "run"], "microshift", None),
        (["/snap/microk8s/1/kubelite", "--root-dir=/s"], "kubelite", "/s"),
    ],
)
def test_who_is_a_kubelet(tree: Tree, arguments: list[str], kind: str, root: str | None) -> None:
    tree.process(9, *arguments)
    (process,) = found(tree)
    assert (process.kind, root_of(process)) == (kind, root)


@pytest.mark.parametrize(
    "arguments",
    [["/usr/local/bin/k3s", "kubectl", "get"], ["kubelet-wrapper"], ["sh", "kubelet"], ["rke2"]],
)
def test_who_is_none(tree: Tree, arguments: list[str]) -> None:
    tree.process(9, *arguments)
    assert found(tree) == ()


def test_a_supervisor_counts_only_without_its_kubelet(tree: Tree) -> None:
    tree.process(8, "/usr/local/bin/k0s", "worker")
    assert [process.kind for process in found(tree)] == ["k0s"]
    tree.process(9, "/var/lib/k0s/bin/kubelet", "--root-dir=/var/lib/k0s/kubelet")
    assert [process.pid for process in found(tree)] == [9]


def test_microk8s_arguments_file(tree: Tree) -> None:
    path = "/var/snap/microk8s/current/args/kubelet"
    tree.file(path, '# c\n--root-dir=${SNAP_COMMON}/var/lib/kubelet\n--node-labels="a=b"\n')
    tree.process(9, "/snap/microk8s/5/kubelite", f"--kubelet-args-file={path}")
    (process,) = found(tree)
    assert root_of(process) == "/var/snap/microk8s/common/var/lib/kubelet"


def test_a_long_command_line_is_read_to_its_end(tree: Tree) -> None:
    tree.process(9, "kubelet", *(f"--x{i}=y" for i in range(2000)), "--root-dir=/end")
    assert root_of(found(tree)[0]) == "/end"


def test_no_proc_no_kubelets(tmp_path: Path) -> None:
    assert find_kubelet_processes(str(tmp_path / "none")) == ()
    assert kubelet_process(str(tmp_path), 1) is None


@needs_root
def test_a_strangers_process_is_not_believed(tree: Tree) -> None:
    tree.process(9, "kubelet", "--kubeconfig=/evil", owner=1000)
    assert found(tree) == ()


def test_a_pods_process_is_not_believed(tree: Tree) -> None:
    tree.process(9, "kubelet", "--kubeconfig=/evil", cgroup="/kubepods/burstable/podx/y")
    assert found(tree) == ()


@contextmanager
def pretender(*prefix: str) -> Iterator[int]:
    """A real process called kubelet, by `prefix` in namespaces of its own."""
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [*prefix, "bash", "-c", f'exec -a kubelet "{sys.executable}" -c "$0" --root-dir=/x', code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        yield child.pid
    finally:
        child.communicate()


def test_a_real_process_shares_our_mounts() -> None:
    with pretender() as pid:
        process = next(p for p in find_kubelet_processes("/proc") if p.pid == pid)
        assert process.shares_mounts is True
        assert process.flags["root-dir"] == "/x"
        assert process.open_path("/etc/x") == "/etc/x"


def test_a_child_that_starts_a_program_is_no_second_kubelet() -> None:
    """Until it has, it has the kubelet's command line; 600 of 4 000 looks saw one."""
    code = "import subprocess\nwhile True: subprocess.run(['true'])"
    kubelet = subprocess.Popen(["kubelet", "-c", code], executable=sys.executable)
    try:
        for _ in range(1000):
            seen = [p.pid for p in find_kubelet_processes("/proc") if code in p.arguments]
            assert seen in ([kubelet.pid], [])  # none: it is not there yet
    finally:
        kubelet.kill()
        kubelet.wait()


def test_two_kubelets_are_two(tree: Tree) -> None:
    for pid in (7, 8):
        tree.process(pid, "kubelet", "--root-dir=/x")
    assert [p.pid for p in found(tree)] == [7, 8]
    (tree.root / "proc/8/stat").write_text("8 (kubelet) S 7 8 8 0\n")
    assert [p.pid for p in found(tree)] == [7]
    (tree.root / "proc/8/stat").write_text("8 (kubelet) S 1 8 8 0\n")
    assert [p.pid for p in found(tree)] == [7, 8]


@needs_root
def test_a_real_process_with_mounts_of_its_own() -> None:
    with pretender("unshare", "-m") as pid:
        process = next(p for p in find_kubelet_processes("/proc") if p.pid == pid)
        assert process.shares_mounts is False
        assert process.open_path("/etc/x") == f"/proc/{pid}/root/etc/x"
        assert process.open_path("x") == f"/proc/{pid}/root{os.getcwd()}/x"


def test_node_name(tree: Tree) -> None:
    tree.process(9, "kubelet", "--hostname-override= Worker-1 ")
    assert node_name_of(found(tree)[0]) == ("worker-1", "kubelet 9")


@pytest.mark.parametrize(
    ("flags", "path"),
    [
        ([], "/var/lib/kubelet/pki/kubelet-client-current.pem"),
        (["--root-dir=/r"], "/r/pki/kubelet-client-current.pem"),
        (["--cert-dir=/c"], "/c/kubelet-client-current.pem"),
        (["--kubeconfig=/k.conf"], "/named.pem"),
        ([], "/var/lib/rancher/k3s/agent/client-kubelet.crt"),
    ],
)
def test_node_name_of_the_certificate(tree: Tree, flags: list[str], path: str) -> None:
    tree.file("/k.conf", "users:\n- user:\n    client-certificate: /named.pem\n")
    file = tree.file(path, PEM.read_bytes())
    tree.process(9, "kubelet", *flags)
    assert node_name_of(found(tree)[0]) == ("worker-0.site-7.example", f"certificate {file}")


def test_node_name_unknown(tree: Tree) -> None:
    tree.process(9, "kubelet")
    assert node_name_of(found(tree)[0]) == (None, None)  # no namespaces to compare in this /proc


@needs_root
def test_a_certificate_that_may_not_be_read_is_no_reason_to_guess(tmp_path: Path) -> None:
    """The child drops to nobody, finds its own `kubelet`, and may not read what that names."""
    tmp_path.chmod(0o755)
    (tmp_path / "kubelet-client-current.pem").write_bytes(PEM.read_bytes())
    (tmp_path / "kubelet-client-current.pem").chmod(0)
    code = f"""
import os
from dpctl.env import certificate
from dpctl.env.kubelets import KubeletProcess, node_name_of
os.setuid(65534)
flags = {{"cert-dir": {str(tmp_path)!r}}}
print(node_name_of(KubeletProcess(os.getpid(), "kubelet", (), flags, True, True, "/proc", "/")))
"""
    for parent in tmp_path.parents:
        if str(parent).startswith("/tmp/pytest"):
            parent.chmod(0o755)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.startswith("(None, "), answer.stderr
    assert "kubelet-client-current.pem" in answer.stdout


def test_the_host_name_where_there_is_no_certificate() -> None:
    process = KubeletProcess(os.getpid(), "kubelet", (), {}, True, True, "/proc", "/")
    if os.path.exists("/var/lib/kubelet/pki"):
        pytest.skip("a kubelet has lived here")
    assert node_name_of(process) == (os.uname().nodename.lower(), "host name")


def test_a_thousand_processes_cost_little(tree: Tree) -> None:
    for pid in range(100, 1100):
        tree.process(pid, "/usr/bin/something", "--root-dir=/x")
    started = time.process_time()
    assert found(tree) == ()
    assert time.process_time() - started < 0.5  # 15 ms when nothing else runs
