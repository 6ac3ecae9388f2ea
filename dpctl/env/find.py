"""`find_env`: flag > environment > configuration file > running kubelet > known layout > default.

Each path on its own: device-plugins does not follow the kubelet's `--root-dir`
(kubelet-facts §0.2).
"""

from __future__ import annotations

import os

from dpctl.env.given import Given
from dpctl.env.layouts import (
    CONFIG_FILES,
    DEVICE_PLUGIN_SIGNS,
    POD_RESOURCES_SIGNS,
    REGISTRY_SIGNS,
    ROOT_SIGNS,
    ROOTS,
    home_of,
)
from dpctl.env.machine import Machine
from dpctl.env.places import DEFAULT_MESSAGE_SIZE, DEFAULT_TIMEOUT, Env, Place, Settings
from dpctl.env.reading import CONSTRUCTOR_ERRORS, exists, read_limited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

POD_RESOURCES = "pod-resources/kubelet.sock"
REGISTRY = "plugins_registry"
POD_LOGS = "/var/log/pods"
# Places of a bundle, by the name of the setting: the layout that `dpctl snapshot` writes.
BUNDLE_PLACES = {
    "kubelet-root": "kubelet",
    "device-plugin-dir": "device-plugins",
    "pod-resources-socket": "podresources",
    "plugins-registry": "plugins_registry",
    "pod-logs": "pods",
    "proc": "proc",
    "sys": "sys",
    "kubelet-config": "kubelet/config.yaml",
}
_LARGEST_CONFIG = 1 << 20


def find_env(
    settings: Settings, environ: Mapping[str, str] = os.environ, *, scan: bool = True
) -> Env:
    """Decide every place once. Reads configuration files, /proc and looks which paths exist.

    `scan=False` leaves running kubelets out (TAB: a node of 2000 processes costs 30 ms); what the
    kubelet would have said is then guessed from layouts. The device-plugin directory is the same
    either way. Raises BadDataError and DeniedError for a configuration file.
    """
    return _Finder(settings, environ, scan).env()


class _Finder:
    """One run of the search."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], scan: bool) -> None:
        self.settings = settings
        self.given = Given(settings, environ)
        self.machine = Machine(
            self.given.text("host-root", settings.host_root, "DPCTL_HOST_ROOT")
            or Place("host-root", "/", "default"),
            scan,
        )

    def env(self) -> Env:
        settings = self.settings
        bundle = self.given.text("from", settings.bundle, "DPCTL_FROM")
        timeout, request_timeout = self.given.number(
            "request-timeout", settings.request_timeout, DEFAULT_TIMEOUT
        )
        size, message_size = self.given.number(
            "max-message-size", settings.max_message_size, DEFAULT_MESSAGE_SIZE
        )
        user = self.given.text("as", settings.as_user)
        groups, group_place = self.given.groups()
        allocatable, no_allocatable = self.given.no_allocatable()
        context = self.given.text("context", settings.context)
        common = {
            "host_root": self.machine.host_root,
            "context": context or Place("context", None, "default"),
        }
        places = self.bundle_places(bundle) if bundle else self.live_places()
        return Env(
            **common,
            **places,
            as_user=user.value if user else None,
            as_groups=groups,
            request_timeout=float(timeout),
            max_message_size=int(size),
            no_allocatable=allocatable,
            others=(
                user or Place("as", None, "default"),
                group_place,
                request_timeout,
                message_size,
                no_allocatable,
            ),
        )

    def live_places(self) -> dict[str, Place]:
        root = self.kubelet_root()
        config = self.kubelet_config(root)
        return {
            "bundle": Place("from", None, "default"),
            "kubelet_root": root,
            "device_plugin_dir": self.device_plugin_dir(),
            "pod_resources_socket": self.given.text(
                "pod-resources-socket",
                self.settings.pod_resources_socket,
                "DPCTL_POD_RESOURCES_SOCKET",
            )
            or self.below_root("pod-resources-socket", root, POD_RESOURCES, POD_RESOURCES_SIGNS),
            "plugins_registry": self.below_root("plugins-registry", root, REGISTRY, REGISTRY_SIGNS),
            "pod_logs": self.pod_logs(config),
            "proc": self.machine.proc,
            "sys": self.machine.sys,
            "kubelet_config": config,
            "kubeconfig": self.kubeconfig(),
            "node_name": self.node_name(),
        }

    def kubelet_root(self) -> Place:
        name = "kubelet-root"
        given = self.given.text(name, self.settings.kubelet_root, "DPCTL_KUBELET_ROOT")
        if given:
            return given
        from_kubelet = self.machine.from_kubelet(name)
        if from_kubelet:
            return from_kubelet
        return self.machine.known(name, ((label, root, "") for label, root in ROOTS), ROOT_SIGNS)

    def device_plugin_dir(self) -> Place:
        name = "device-plugin-dir"
        given = self.given.text(name, self.settings.device_plugin_dir, "DPCTL_DEVICE_PLUGIN_DIR")
        if given:
            return given
        place = self.machine.known(
            name, ((label, root, "device-plugins") for label, root in ROOTS), DEVICE_PLUGIN_SIGNS
        )
        note = place.note or self.machine.about(self.machine.kubelets())
        return Place(place.name, place.value, place.origin, place.tried, note)

    def below_root(self, name: str, root: Place, part: str, signs: tuple[str, ...]) -> Place:
        """`part` of the kubelet's root where somebody named the root, else of any known root."""
        if root.value is not None and not root.origin.startswith(("layout", "default")):
            return Place(name, f"{root.value.rstrip('/')}/{part}", f"{root.name}: {root.origin}")
        return self.machine.known(name, ((label, path, part) for label, path in ROOTS), signs)

    def kubelet_config(self, root: Place) -> Place:
        name = "kubelet-config"
        below = f"{root.value.rstrip('/')}/config.yaml" if root.value else None
        for process in self.machine.kubelets():
            if process.shares_mounts is False and below and exists(below):
                continue  # it reads another tree than the one with this file (several nodes here)
            if given := process.flags.get("config"):
                try:
                    path = process.open_path(given)
                except OSError:
                    continue
                return Place(name, path, f"kubelet {process.pid}")
        files: list[tuple[str, str | None]] = [(f"{root.name}: {root.origin}", below)]
        files += [(f"layout {label}", self.machine.at_host(path)) for label, path in CONFIG_FILES]
        tried = tuple(dict.fromkeys(path for _, path in files if path))
        for origin, candidate in files:
            if candidate and exists(candidate):
                return Place(name, candidate, origin, tried)
        return Place(name, None, "default", tried, "no configuration file of a kubelet found")

    def pod_logs(self, config: Place) -> Place:
        """`podLogsDir` of the configuration, which few set, else the kubelet's default."""
        default = self.machine.at_host(POD_LOGS)
        if config.value is not None and self.machine.scan:
            try:
                data = read_limited(config.value, _LARGEST_CONFIG)
            except OSError:
                data = b""
            if b"podLogsDir" in data and (path := _pod_logs_dir(data)):
                origin = f"kubelet-config {config.value}"
                return Place("pod-logs", self.machine.at_host(path), origin)
        return Place("pod-logs", default, "default", (default,) if default else ())

    def kubeconfig(self) -> Place:
        name = "kubeconfig"
        if self.settings.kubeconfig is not None:
            return Place(name, self.settings.kubeconfig, "flag")
        if value := self.given.environ.get("KUBECONFIG"):
            return Place(name, value, "environment KUBECONFIG")
        if given := self.given.text(name, None):
            return given
        from dpctl.env.kubeconfig import find_kubeconfig

        return find_kubeconfig(
            home_of(self.given.environ),
            self.given.environ,
            self.machine.at_host,
            self.machine.kubelets,
        )

    def node_name(self) -> Place:
        name = "node"
        given = self.given.text(name, self.settings.node_name, "NODE_NAME")
        if given:
            return given
        kubelets = self.machine.kubelets()
        ours = [process for process in kubelets if process.shares_mounts is not False] or kubelets
        note = self.machine.about(kubelets)
        if len(ours) == 1:
            from dpctl.env.kubelets import node_name_of

            value, origin = node_name_of(ours[0])
            if value and origin:
                return Place(name, value, origin, note=note)
            if origin:
                note = f"the certificate {origin} may not be read; the Node's name may differ"
        if self.machine.root != "/":
            file = self.machine.at_host("/etc/hostname")
            try:
                text = read_limited(file, 4096).decode("utf-8", "replace").strip() if file else ""
            except OSError:
                text = ""
            if text:
                return Place(name, text.lower(), f"host name ({file})", note=note)
        return Place(name, os.uname().nodename.strip().lower() or None, "host name", note=note)

    def bundle_places(self, bundle: Place) -> dict[str, Place]:
        base = (bundle.value or "").rstrip("/") or "/"
        flags = {
            "kubelet-root": self.settings.kubelet_root,
            "device-plugin-dir": self.settings.device_plugin_dir,
            "pod-resources-socket": self.settings.pod_resources_socket,
        }
        places = {
            name.replace("-", "_"): Place(
                name,
                f"{base}/{part}",
                "bundle",
                note=f"--{name} is not used with --from" if flags.get(name) is not None else None,
            )
            for name, part in BUNDLE_PLACES.items()
        }
        node = Place(
            "node", self.settings.node_name, "flag" if self.settings.node_name else "bundle"
        )
        kubeconfig = Place("kubeconfig", None, "bundle", note="a bundle needs no API server")
        return {**places, "bundle": bundle, "kubeconfig": kubeconfig, "node_name": node}


def _pod_logs_dir(data: bytes) -> str | None:
    import yaml

    try:
        # Texts alone: a number of a few 100 KiB (`1:1:1:…`) takes minutes.
        document = yaml.load(data, yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, *CONSTRUCTOR_ERRORS):
        return None  # whoever reads the configuration itself says so
    value = document.get("podLogsDir") if isinstance(document, dict) else None
    return value if isinstance(value, str) and value.startswith("/") else None
