"""Where distributions keep a kubelet's files, and where dpctl keeps its own. Lists, no reading.

What a running kubelet says is in `kubelets`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_ROOT = "/var/lib/kubelet"

# First hit wins, so the compiled default comes first. microk8s: today a link leads from
# /var/lib/kubelet into the snap; older ones have the snap's path alone (kubelet-facts §1.4).
ROOTS: tuple[tuple[str, str], ...] = (
    ("kubeadm", DEFAULT_ROOT),
    ("k0s", "/var/lib/k0s/kubelet"),
    ("k3s", "/var/lib/rancher/k3s/agent/kubelet"),
    ("RKE", "/opt/rke/var/lib/kubelet"),
    ("data", "/data/kubelet"),
    ("microk8s", "/var/snap/microk8s/common/var/lib/kubelet"),
)

# Signs of a root in use, the surest first: a left-over or half a root (k0s keeps only
# device-plugins in /var/lib/kubelet) must not hide the one in use.
ROOT_SIGNS = ("pod-resources/kubelet.sock", "cpu_manager_state", "pods", "pki", "")
DEVICE_PLUGIN_SIGNS = (
    "device-plugins/kubelet.sock",
    "device-plugins/kubelet_internal_checkpoint",
    "device-plugins",
)
POD_RESOURCES_SIGNS = ("pod-resources/kubelet.sock", "pod-resources")
REGISTRY_SIGNS = ("plugins_registry",)

# A kubelet's configuration where no command line tells.
CONFIG_FILES: tuple[tuple[str, str], ...] = (
    ("kubeadm", "/var/lib/kubelet/config.yaml"),
    ("EKS", "/etc/kubernetes/kubelet/config.json"),
    ("EKS", "/etc/kubernetes/kubelet/kubelet-config.json"),
    ("GKE", "/home/kubernetes/kubelet-config.yaml"),
    ("k0s", "/run/k0s/kubelet-config.yaml"),
    ("k0s", "/var/lib/k0s/kubelet-config.yaml"),
)

# Files with credentials that a node may hold, widest rights first.
KUBECONFIG_ADMIN = ("admin", "/etc/kubernetes/admin.conf")
KUBECONFIG_KUBELET = ("kubelet", "/etc/kubernetes/kubelet.conf")
KUBECONFIGS: tuple[tuple[str, str], ...] = (
    ("k3s", "/etc/rancher/k3s/k3s.yaml"),
    ("RKE2", "/etc/rancher/rke2/rke2.yaml"),
    ("microk8s", "/var/snap/microk8s/current/credentials/client.config"),
    ("k0s", "/var/lib/k0s/pki/admin.conf"),
)

# The kubelet's client certificate: below its root, the compiled default, then those who name it
# otherwise.
CERTIFICATE = "pki/kubelet-client-current.pem"
CERTIFICATES = (
    f"{DEFAULT_ROOT}/{CERTIFICATE}",
    "/var/lib/rancher/k3s/agent/client-kubelet.crt",
    "/var/lib/rancher/rke2/agent/client-kubelet.crt",
)

# dpctl's own configuration for the whole machine.
SYSTEM_FILE = "/etc/dpctl.toml"


def home_of(environ: Mapping[str, str]) -> str | None:
    home = environ.get("HOME")
    if home:
        return home.rstrip("/")
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir.rstrip("/") or None
    except (ImportError, KeyError):
        return None


def user_file(environ: Mapping[str, str]) -> str | None:
    """`$XDG_CONFIG_HOME/dpctl/config.toml`, by default below `~/.config`; None without a home."""
    base = environ.get("XDG_CONFIG_HOME", "")
    if not base.startswith("/"):
        home = home_of(environ)
        base = f"{home}/.config" if home is not None else ""
    return f"{base}/dpctl/config.toml" if base else None


def config_files(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Files in the order they are read: later ones win."""
    user = user_file(environ)
    return (SYSTEM_FILE, user) if user else (SYSTEM_FILE,)
