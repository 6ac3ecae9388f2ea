from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dpctl.env import kubeconfig, layouts
from tests.env.tree import Tree


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(layouts, "SYSTEM_FILE", str(tmp_path / "none.toml"))
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", str(tmp_path / "sa" / "token"))
    return Tree(tmp_path / "host")


def test_the_whole_order(tree: Tree, tmp_path: Path) -> None:
    """Each file is taken away in turn; the next one is found."""
    home = tree.file("/nobody/.kube/config")
    (tmp_path / "sa").mkdir()
    (tmp_path / "sa" / "token").write_text("t")
    pod: dict[str, Any] = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    tree.process(9, "kubelet", "--kubeconfig=/k/own.conf")
    files = [
        ("default", home),
        ("in-cluster", None),
        ("layout admin", tree.file("/etc/kubernetes/admin.conf")),
        ("kubelet 9", tree.file("/k/own.conf")),
        ("layout kubelet", tree.file("/etc/kubernetes/kubelet.conf")),
        ("layout k3s", tree.file("/etc/rancher/k3s/k3s.yaml")),
        ("layout RKE2", tree.file("/etc/rancher/rke2/rke2.yaml")),
        (
            "layout microk8s",
            tree.file("/var/snap/microk8s/current/credentials/client.config"),
        ),
        ("layout k0s", tree.file("/var/lib/k0s/pki/admin.conf")),
    ]
    for origin, path in files:
        place = tree.find(**pod).kubeconfig
        assert (place.origin, place.value) == (origin, path)
        os.unlink(path or tmp_path / "sa" / "token")
    place = tree.find(**pod).kubeconfig
    assert place.value is None
    assert [p for _, p in files if p] == [p for p in place.tried if "token" not in p]
    assert place.note is not None
    assert "--kubeconfig" in place.note


def test_a_token_alone_is_no_cluster(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "sa").mkdir()
    (tmp_path / "sa" / "token").write_text("t")
    assert tree.find().kubeconfig.value is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_strangers_file_is_not_used(tree: Tree) -> None:
    """A kubeconfig can name a program to run."""
    os.chown(tree.file("/etc/kubernetes/admin.conf"), 1000, 1000)
    place = tree.find().kubeconfig
    assert place.value is None
    assert any("not used" in text for text in place.tried)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_an_unreadable_one_is_taken_only_when_no_other_can(tree: Tree) -> None:
    admin = tree.file("/etc/kubernetes/admin.conf")
    os.chmod(admin, 0)
    os.chmod(tree.root, 0o755)
    for parent in tree.root.parents:
        if str(parent).startswith("/tmp/pytest"):
            parent.chmod(0o755)
    k3s = tree.file("/etc/rancher/k3s/k3s.yaml")
    assert tree.find().kubeconfig.value == k3s or os.geteuid() == 0  # loads what loads late
    os.seteuid(65534)
    try:
        assert tree.find().kubeconfig.value == k3s
        os.seteuid(0)
        os.unlink(k3s)
        os.seteuid(65534)
        place = tree.find().kubeconfig
    finally:
        os.seteuid(0)
    assert (place.value, place.note) == (admin, "may not be read")


def test_kubeconfig_variable_is_kept_as_it_is(tree: Tree) -> None:
    tree.file("/etc/kubernetes/admin.conf")
    assert tree.find(KUBECONFIG="/a:/b").kubeconfig.value == "/a:/b"
