"""Which CDI specification answers for a name, as a container runtime decides it. Pure.

The later directory wins. A name that two files of one directory have is nobody's, even where a
later directory has it, too: so does the library in containerd and CRI-O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpctl.inventory.rows import AskedCdi
from dpctl.model import CdiSpec, HostPath
from dpctl.names import is_cdi_name
from dpctl.text import natural_key, shorten

ANNOTATION = "cdi.k8s.io/"
"""Prefix of annotations that ask for CDI devices, a list of names with commas between."""
_WHERE = "/etc/cdi or /var/run/cdi"
_MOST_NAMED = 8


class CdiDevices:
    """The names of one snapshot; `specs` None: nobody looked."""

    def __init__(
        self, specs: Iterable[CdiSpec] | None, paths: Mapping[str, HostPath] | None
    ) -> None:
        self._looked = specs is not None
        self._paths = paths or {}
        self._specs: dict[str, CdiSpec] = {}
        self._nodes: dict[str, tuple[str, ...]] = {}
        self._conflicts: dict[str, list[str]] = {}
        self._of_kind: dict[str, set[str]] = {}
        self._broken = [spec for spec in specs or () if spec.error is not None]
        for spec in specs or ():
            for device in spec.devices:
                name = f"{spec.kind}={device.name}"
                self._of_kind.setdefault(spec.kind, set()).add(device.name)
                before = self._specs.get(name)
                if before is not None and before.priority == spec.priority:
                    self._conflicts.setdefault(name, [before.path]).append(spec.path)
                if before is None or before.priority < spec.priority:
                    self._specs[name] = spec
                    self._nodes[name] = (*spec.device_nodes, *device.device_nodes)

    def asked(
        self, names: Iterable[str], annotations: Mapping[str, str] | None = None
    ) -> tuple[AskedCdi, ...]:
        """Each name against the host; a name that an annotation repeats comes once."""
        found = {name: self._one(name, None) for name in names}
        for key, value in (annotations or {}).items():
            if key.startswith(ANNOTATION):
                for name in value.split(","):
                    found.setdefault(name, self._one(name, key))
        return tuple(found.values())

    def _one(self, name: str, annotation: str | None) -> AskedCdi:
        if not is_cdi_name(name):
            return AskedCdi(
                name,
                annotation,
                False,
                None,
                "no CDI name (vendor/class=device): the container cannot start",
                "report it to the plugin's maker",
            )
        if not self._looked:
            return AskedCdi(name, annotation, None, None, None, None)
        if name in self._conflicts:
            files = " and ".join(self._conflicts[name])
            return AskedCdi(
                name,
                annotation,
                False,
                None,
                f"{files} both have it: the runtime takes neither, and the container cannot start",
                "remove one of the files, or the device from one",
            )
        spec = self._specs.get(name)
        if spec is None:
            return AskedCdi(name, annotation, False, None, *self._unresolved(name))
        for path in self._nodes[name]:
            looked = self._paths.get(path)
            if looked is not None and looked.kind is None and looked.reason is None:
                return AskedCdi(
                    name,
                    annotation,
                    True,
                    spec.path,
                    f"resolved, but its device node {path} is MISSING on this host: the container"
                    " cannot start",
                    f"load the driver, or write {spec.path} anew (NVIDIA: `nvidia-ctk cdi"
                    " generate`, or restart the plugin)",
                )
        return AskedCdi(name, annotation, True, spec.path, None, None)

    def _unresolved(self, name: str) -> tuple[str, str]:
        kind = name.partition("=")[0]
        known = sorted(self._of_kind.get(kind, ()), key=natural_key)
        problem = f"UNRESOLVED: no file of {_WHERE} has it; the container cannot start"
        if known:
            more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
            problem += f" ({kind} has {', '.join(known[:_MOST_NAMED])}{more})"
        if self._broken:
            spec = self._broken[0]
            more = f"; so are {len(self._broken) - 1} more" if len(self._broken) > 1 else ""
            return (
                f"{problem}; {spec.path} is not usable: {shorten(spec.error or '', 200)}{more}",
                "mend that file, or let the plugin write it anew (restart it)",
            )
        return problem, (
            "restart the plugin, which writes the file (NVIDIA: `nvidia-ctk cdi generate`), and"
            " see that runtime and plugin mean the same directory"
        )
