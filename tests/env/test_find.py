from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dpctl.env import Place, Settings, find_env, layouts
from dpctl.errors import BadDataError
from tests.env.test_kubelets import pretender
from tests.env.tree import Tree

ROOTS_FILE = Path(__file__).parent.parent / "data" / "inputs" / "roots.txt"
REPORTED_ROOTS = [line.split(" (")[0] for line in ROOTS_FILE.read_text().splitlines()]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(layouts, "SYSTEM_FILE", str(tmp_path / "host" / "etc" / "dpctl.toml"))
    return Tree(tmp_path / "host")


def test_every_reported_root_is_known() -> None:
    assert set(REPORTED_ROOTS) == {root for _, root in layouts.ROOTS}
    assert len(REPORTED_ROOTS) == 6


@pytest.mark.parametrize("root", REPORTED_ROOTS)
def test_each_layout_is_found_by_its_files(tree: Tree, root: str) -> None:
    (tree.root / "var/lib/kubelet").mkdir(parents=True)  # left over, or k0s' half
    tree.file(f"{root}/pod-resources/kubelet.sock")
    tree.file(f"{root}/plugins_registry/.keep")
    env = tree.find()
    label = next(label for label, path in layouts.ROOTS if path == root)
    assert env.kubelet_root.value == tree.at(root)
    assert env.pod_resources_socket.value == tree.at(f"{root}/pod-resources/kubelet.sock")
    assert env.plugins_registry.value == tree.at(f"{root}/plugins_registry")
    assert env.kubelet_root.origin == f"layout {label}"
    assert tree.at("/data/kubelet") in env.kubelet_root.tried


@pytest.mark.parametrize("root", REPORTED_ROOTS)
def test_device_plugins_of_each_layout(tree: Tree, root: str) -> None:
    tree.file(f"{root}/device-plugins/kubelet_internal_checkpoint")
    assert tree.find().device_plugin_dir.value == tree.at(f"{root}/device-plugins")
    assert tree.find(scan=False).device_plugin_dir.value == tree.at(f"{root}/device-plugins")


def test_k0s_has_two_roots_at_once(tree: Tree) -> None:
    tree.file("/var/lib/kubelet/device-plugins/kubelet.sock")
    tree.file("/var/lib/k0s/kubelet/pod-resources/kubelet.sock")
    tree.file("/var/lib/k0s/kubelet/cpu_manager_state")
    env = tree.find()
    assert env.kubelet_root.value == tree.at("/var/lib/k0s/kubelet")
    assert env.device_plugin_dir.value == tree.at("/var/lib/kubelet/device-plugins")
    assert env.pod_resources_socket.value == tree.at(
        "/var/lib/k0s/kubelet/pod-resources/kubelet.sock"
    )


def test_microk8s_link_is_resolved_inside_the_host_root(tree: Tree) -> None:
    snap = "/var/snap/microk8s/common/var/lib/kubelet"
    tree.file(f"{snap}/device-plugins/kubelet.sock")
    tree.file(f"{snap}/pod-resources/kubelet.sock")
    tree.link("/var/lib/kubelet", snap)
    env = tree.find()
    assert env.device_plugin_dir.value == tree.at(f"{snap}/device-plugins")
    assert env.kubelet_root.value == tree.at(snap)
    assert env.kubelet_root.origin == "layout kubeadm"


@pytest.mark.parametrize(
    "target", ["../../../../../../../../etc", "/../etc", "/proc/self/root/etc"]
)
def test_a_link_out_of_the_host_root_leads_nowhere(tree: Tree, target: str) -> None:
    tree.link("/var/lib/kubelet", target)
    env = tree.find()
    for place in (env.kubelet_root, env.device_plugin_dir, env.pod_resources_socket):
        assert place.value is not None
        assert place.value.startswith(tree.at("/"))
        assert not os.path.exists(place.value)


def test_a_loop_of_links_is_said(tree: Tree) -> None:
    for _, root in layouts.ROOTS:
        tree.link(root, root)
    env = tree.find()
    assert env.kubelet_root.value is None
    assert env.kubelet_root.note == "too many symbolic links"
    assert len(env.kubelet_root.tried) == 6


def test_a_sign_that_leads_out_is_none(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("")
    tree.link("/data/kubelet/cpu_manager_state", str(tmp_path / "outside"))
    tree.file("/opt/rke/var/lib/kubelet/cpu_manager_state")
    assert tree.find().kubelet_root.origin == "layout RKE"


def test_nothing_there_gives_the_defaults_and_what_was_tried(tree: Tree) -> None:
    env = tree.find()
    assert env.kubelet_root.value == tree.at("/var/lib/kubelet")
    assert env.device_plugin_dir.value == tree.at("/var/lib/kubelet/device-plugins")
    assert env.pod_resources_socket.value == tree.at("/var/lib/kubelet/pod-resources/kubelet.sock")
    assert env.pod_logs.value == tree.at("/var/log/pods")
    assert env.device_plugin_dir.origin == "default"
    assert env.device_plugin_dir.tried == tuple(
        tree.at(f"{root}/device-plugins") for _, root in layouts.ROOTS
    )
    assert env.kubelet_config.value is None
    assert tree.at("/var/lib/kubelet/config.yaml") in env.kubelet_config.tried


FLAGS = [
    ("kubelet_root", "kubelet-root", "DPCTL_KUBELET_ROOT"),
    ("device_plugin_dir", "device-plugin-dir", "DPCTL_DEVICE_PLUGIN_DIR"),
    ("pod_resources_socket", "pod-resources-socket", "DPCTL_POD_RESOURCES_SOCKET"),
    ("kubeconfig", "kubeconfig", "KUBECONFIG"),
    ("node_name", "node", "NODE_NAME"),
]


def _any(values: dict[str, str]) -> dict[str, Any]:
    return dict(values)


@pytest.mark.parametrize(("field", "key", "variable"), FLAGS)
def test_flag_over_environment_over_config(tree: Tree, field: str, key: str, variable: str) -> None:
    """Never with the host root in front, and whether it exists or not."""
    system = tree.file("/etc/dpctl.toml", f'{key} = "/system"\n')
    assert getattr(tree.find(), field) == Place(key, "/system", f"config {system}")
    user = tree.file("/nobody/.config/dpctl/config.toml", f'{key.replace("-", "_")} = "/user"\n')
    assert getattr(tree.find(), field) == Place(key, "/user", f"config {user}")
    named = tree.find(**_any({variable: "/named"}))
    assert getattr(named, field) == Place(key, "/named", f"environment {variable}")
    flag = tree.find(Settings(**_any({field: "/flag"})), **_any({variable: "/named"}))
    assert getattr(flag, field) == Place(key, "/flag", "flag")
    assert getattr(tree.find(**_any({variable: ""})), field).value == "/user"


def test_host_root_and_bundle_by_flag_environment_and_config(tree: Tree, tmp_path: Path) -> None:
    home = {"HOME": str(tree.root / "nobody")}
    assert find_env(Settings(), home).host_root == Place("host-root", "/", "default")
    user = tree.file("/nobody/.config/dpctl/config.toml", f'host_root = "{tree.root}"\n')
    assert find_env(Settings(), home).host_root.origin == f"config {user}"
    assert find_env(Settings(host_root="/x"), home).host_root == Place("host-root", "/x", "flag")
    env = tree.find(Settings(bundle="b.tgz"), DPCTL_FROM="other")
    assert env.bundle == Place("from", "b.tgz", "flag")
    assert tree.find(DPCTL_FROM="other").bundle.origin == "environment DPCTL_FROM"


def test_xdg_config_home(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "xdg/dpctl").mkdir(parents=True)
    (tmp_path / "xdg/dpctl/config.toml").write_text('node = "x"\n')
    assert tree.find(XDG_CONFIG_HOME=str(tmp_path / "xdg")).node_name.value == "x"
    assert tree.find(XDG_CONFIG_HOME="xdg").node_name.value != "x"


def test_other_settings(tree: Tree) -> None:
    tree.file(
        "/nobody/.config/dpctl/config.toml",
        'as = "me"\nas-group = ["a", "b"]\nrequest-timeout = "1m"\nmax-message-size = "1Mi"\n'
        'no-allocatable = true\ncontext = "c"\n',
    )
    env = tree.find()
    assert (env.as_user, env.as_groups) == ("me", ("a", "b"))
    assert (env.request_timeout, env.max_message_size) == (60.0, 1 << 20)
    assert env.no_allocatable
    assert env.context.value == "c"
    env = tree.find(
        Settings(
            as_user="you",
            as_groups=(),
            request_timeout=0.5,
            max_message_size=9,
            context="d",
        )
    )
    assert (env.as_user, env.as_groups) == ("you", ())
    assert (env.request_timeout, env.max_message_size) == (0.5, 9)
    assert env.context == Place("context", "d", "flag")
    defaults = find_env(Settings(), {"HOME": "/nonexistent"}, scan=False)
    assert (defaults.request_timeout, defaults.max_message_size) == (5.0, 64 << 20)
    assert not defaults.no_allocatable


def test_bad_configuration_stops(tree: Tree) -> None:
    tree.file("/etc/dpctl.toml", "kubelet-root = \n")
    with pytest.raises(BadDataError, match="line 1"):
        tree.find()


def test_a_named_root_is_followed_except_by_device_plugins(tree: Tree) -> None:
    tree.file("/var/lib/kubelet/device-plugins/kubelet.sock")
    tree.file("/var/lib/kubelet/pod-resources/kubelet.sock")
    env = tree.find(Settings(kubelet_root="/data/kubelet/"))
    assert env.pod_resources_socket.value == "/data/kubelet/pod-resources/kubelet.sock"
    assert env.pod_resources_socket.origin == "kubelet-root: flag"
    assert env.plugins_registry.value == "/data/kubelet/plugins_registry"
    assert env.device_plugin_dir.value == tree.at("/var/lib/kubelet/device-plugins")


def test_a_running_kubelet(tree: Tree) -> None:
    tree.file("/var/lib/kubelet/device-plugins/kubelet.sock")
    tree.file("/var/lib/kubelet/pod-resources/kubelet.sock")  # an older kubelet's
    tree.file("/srv/config.yaml", "kind: KubeletConfiguration\npodLogsDir: /srv/logs\n")
    tree.process(1, "/sbin/init")
    tree.process(
        77,
        "/usr/bin/kubelet",
        "--root-dir=/srv/kubelet",
        "--config=/srv/config.yaml",
        "--hostname-override=Worker-7",
        "--kubeconfig=/srv/kubelet.conf",
    )
    tree.file("/srv/kubelet.conf")
    env = tree.find()
    assert env.proc.value == tree.at("/proc")
    assert env.kubelet_root == Place("kubelet-root", tree.at("/srv/kubelet"), "kubelet 77")
    assert env.pod_resources_socket.value == tree.at("/srv/kubelet/pod-resources/kubelet.sock")
    assert env.device_plugin_dir.value == tree.at("/var/lib/kubelet/device-plugins")
    assert env.kubelet_config.value == tree.at("/srv/config.yaml")
    assert env.kubelet_config.origin == "kubelet 77"
    assert env.pod_logs.value == tree.at("/srv/logs")
    assert env.node_name == Place("node", "worker-7", "kubelet 77")
    assert env.kubeconfig.value == tree.at("/srv/kubelet.conf")
    assert env.kubeconfig.origin == "kubelet 77"
    unscanned = tree.find(scan=False)
    assert unscanned.kubelet_root.origin == "layout kubeadm"
    assert unscanned.device_plugin_dir.value == env.device_plugin_dir.value


def test_the_file_of_the_tree_that_is_read_comes_first(tree: Tree) -> None:
    """Of two nodes on one machine, one with its kubelet stopped, the other's settings mislead."""
    tree.process(77, "kubelet", "--config=/srv/config.yaml")
    other = tree.file("/proc/77/root/srv/config.yaml", "kind: KubeletConfiguration\n")
    assert tree.find().kubelet_config.value == other
    own = tree.file("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n")
    assert tree.find().kubelet_config.value == own


def test_a_kubelet_without_root_dir_says_so(tree: Tree) -> None:
    tree.file("/data/kubelet/pod-resources/kubelet.sock")  # an older kubelet's
    tree.process(77, "kubelet")
    env = tree.find()
    assert env.kubelet_root.value == tree.at("/var/lib/kubelet")
    assert env.kubelet_root.note is not None
    assert "own default" in env.kubelet_root.note


def test_several_kubelets_are_said(tree: Tree) -> None:
    tree.process(77, "kubelet", "--root-dir=/a", "--hostname-override=a")
    tree.process(78, "kubelet", "--root-dir=/b", "--hostname-override=b")
    env = tree.find()
    for place in (env.kubelet_root, env.device_plugin_dir, env.node_name):
        assert place.note == "2 kubelets run here (pid 77, 78)"
    assert env.node_name.origin.startswith("host name")


def test_a_running_kubelet_that_is_not_the_trees(tree: Tree) -> None:
    """A copied tree has no /proc; the kubelet of the machine that reads it has nothing to say."""
    with pretender() as pid:
        tree.file("/data/kubelet/pod-resources/kubelet.sock")
        assert tree.find().kubelet_root.origin == "layout data"
        assert tree.find().kubelet_config.value is None
        root = f"/proc/{os.getpid()}/root"  # as good as a mounted host
        own = find_env(Settings(host_root=root), {"HOME": "/nonexistent"})
        assert own.proc.value == f"{root}/proc"
        assert str(pid) in f"{own.kubelet_root.origin} {own.kubelet_root.note}"


def test_host_name_of_the_host(tree: Tree) -> None:
    file = tree.file("/etc/hostname", "HOST-9\n")
    assert tree.find().node_name == Place("node", "host-9", f"host name ({file})")
    plain = find_env(Settings(), {"HOME": "/nonexistent"}, scan=False)
    assert plain.node_name.value == os.uname().nodename.lower()


def test_proc_and_sys_only_if_they_look_real(tree: Tree) -> None:
    (tree.root / "proc").mkdir()
    (tree.root / "sys").mkdir()
    env = tree.find()
    assert (env.proc.value, env.sys.value) == ("/proc", "/sys")
    assert env.proc.note is not None
    assert "does not look like" in env.proc.note
    tree.process(5, "x")
    (tree.root / "sys/devices/system/node").mkdir(parents=True)
    env = tree.find()
    assert (env.proc.value, env.sys.value) == (tree.at("/proc"), tree.at("/sys"))


def test_a_bundle_takes_every_path(tree: Tree) -> None:
    settings = Settings(bundle="/b/", device_plugin_dir="/x", node_name="n")
    env = tree.find(settings, DPCTL_KUBELET_ROOT="/y", NODE_NAME="z")
    assert not env.live
    assert env.device_plugin_dir.value == "/b/device-plugins"
    assert env.device_plugin_dir.note == "--device-plugin-dir is not used with --from"
    assert env.kubelet_root == Place("kubelet-root", "/b/kubelet", "bundle")
    assert env.sys.value == "/b/sys"
    assert env.node_name.value == "n"
    assert tree.find(Settings(bundle="/b"), NODE_NAME="z").node_name.value is None
    assert env.kubeconfig.value is None
    paths = list(env)
    for place in (p for p in paths if isinstance(p, Place) and p.origin == "bundle"):
        assert place.value is None or place.value.startswith("/b/")


def test_rows(tree: Tree) -> None:
    tree.file("/data/kubelet/pod-resources/kubelet.sock")
    rows = {row.name: row for row in tree.find(Settings(request_timeout=2.5)).rows()}
    assert rows["pod-resources-socket"].exists is True
    assert rows["device-plugin-dir"].exists is False
    assert rows["device-plugin-dir"].tried
    assert rows["node"].exists is None
    assert rows["request-timeout"].value == "2.5"
    assert rows["request-timeout"].origin == "flag"
    assert rows["max-message-size"].value == str(64 << 20)
    several = {r.name: r for r in tree.find(KUBECONFIG=f"/none:{tree.root}").rows()}
    assert several["kubeconfig"].exists is True
    bundle = {r.name: r for r in tree.find(Settings(bundle="/nonexistent.tgz")).rows()}
    assert bundle["from"].exists is False
    assert bundle["kubelet-root"].exists is None
