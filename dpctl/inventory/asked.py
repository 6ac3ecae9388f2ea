"""What a plugin asked the runtime for, against what the host has: each with what is wrong and what
to do. Pure; CDI names are `cdi`'s.

What comes of it is what runc under containerd and CRI-O do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpctl.inventory.rows import AskedDevice, AskedMount, Clash, PluginAnswer
from dpctl.model import AllocResponse, DeviceSpec, HostPath, Mount

_DEVICES = ("character device", "block device")
_ABSENT = HostPath(None)
# What the kubelet writes itself, over whatever a plugin asked for.
_OWN_ANNOTATIONS = frozenset(
    f"io.kubernetes.{name}"
    for name in (
        "container.hash",
        "container.ports",
        "container.preStopHandler",
        "container.restartCount",
        "container.terminationMessagePath",
        "container.terminationMessagePolicy",
        "pod.deletionGracePeriod",
        "pod.terminationGracePeriod",
    )
)

_REPORT = "report it to the plugin's maker"
_MOST_NAMED = 8

_Place = tuple[str, str]
"""What (`mount`), and its key."""
_Problem = tuple[str | None, str | None]
"""What is wrong, and what to do."""


class Answers:
    """Of the plugins of one container, by resource. `paths`: None, nobody looked."""

    def __init__(
        self, answers: Mapping[str, AllocResponse], paths: Mapping[str, HostPath] | None
    ) -> None:
        self._answers = answers
        self._paths = paths
        self._wanted: dict[_Place, dict[object, list[str]]] = {}
        """What is wanted at a place to the resources that want it so."""
        for resource, answer in answers.items():
            for place, value in _wants(answer).items():
                self._wanted.setdefault(place, {}).setdefault(value, []).append(resource)

    def of(self, resource: str) -> PluginAnswer | None:
        said = self._answers.get(resource)
        if said is None:
            return None
        return PluginAnswer(
            envs=said.envs,
            mounts=tuple(_mount(mount, self._paths) for mount in said.mounts),
            device_nodes=tuple(_device(device, self._paths) for device in said.device_specs),
            annotations=said.annotations,
            cdi_devices=said.cdi_devices,
            clashes=tuple(self._clashes(said)),
        )

    def _clashes(self, said: AllocResponse) -> Iterator[Clash]:
        """Nothing is shared with other containers. The kubelet keeps what it meets first, in an
        order that differs at every start of the container."""
        for key in said.annotations:
            if key in _OWN_ANNOTATIONS:
                problem = "the kubelet writes its own value over it"
                yield Clash("annotation", key, (), problem, _REPORT)
        for place, value in _wants(said).items():
            wanted = self._wanted[place]
            others = [
                name for other in wanted if other != value for name in wanted[other][:_MOST_NAMED]
            ][:_MOST_NAMED]
            if others:
                yield Clash(
                    *place,
                    tuple(others),
                    f"{', '.join(others)} wants it otherwise: the kubelet takes either, anew at"
                    " every start of the container",
                    "put the resources into containers of their own, or configure one of the"
                    " plugins",
                )


def _found(path: str, paths: Mapping[str, HostPath] | None) -> HostPath | None:
    """None: nobody looked."""
    return None if paths is None else paths.get(path) or (None if path[:1] == "/" else _ABSENT)


def _exists(found: HostPath | None) -> bool | None:
    return None if found is None or found.reason else found.kind is not None


def _mount(mount: Mount, paths: Mapping[str, HostPath] | None) -> AskedMount:
    found = _found(mount.host_path, paths)
    problem, advice = _path_problem(mount.host_path, found)
    if problem is None and found is not None and found.kind is None:
        problem = "MISSING on this host: the runtime makes an empty directory there and mounts that"
        advice = "install what the plugin promises there (a driver's files?), then restart the pod"
    return AskedMount(
        container_path=mount.container_path,
        host_path=mount.host_path,
        read_only=mount.read_only,
        exists=_exists(found),
        kind=found.kind if found else None,
        problem=problem,
        advice=advice,
    )


def _device(device: DeviceSpec, paths: Mapping[str, HostPath] | None) -> AskedDevice:
    found = _found(device.host_path, paths)
    problem, advice = _path_problem(device.host_path, found)
    if problem is None and found is not None:
        problem, advice = _kind_problem(device.host_path, found)
    if problem is None:
        problem, advice = _permissions_problem(device, found)
    if problem is None and found is not None:
        problem, advice = _link_problem(device.host_path, found)
    return AskedDevice(
        container_path=device.container_path,
        host_path=device.host_path,
        permissions=device.permissions,
        exists=_exists(found),
        kind=found.kind if found else None,
        number=found.number if found else None,
        problem=problem,
        advice=advice,
    )


def _path_problem(path: str, found: HostPath | None) -> _Problem:
    if not path.startswith("/"):
        return (
            "no absolute path: what the runtime makes of it depends on where it runs",
            _REPORT,
        )
    if found is not None and found.reason:
        return (
            f"cannot be looked at: {found.reason}",
            f"look at it as root: `namei -l {_quoted(path)}`",
        )
    return None, None


def _kind_problem(path: str, found: HostPath) -> _Problem:
    if found.kind is None:
        return (
            "MISSING on this host: the container cannot start",
            "load the driver that makes it (`dmesg`); if the device has another name now, restart"
            " the plugin, then the pod",
        )
    if found.kind not in (*_DEVICES, "directory"):  # the runtime takes every device below one
        return (
            f"is a {found.kind}, not a device: the container cannot start",
            f"see what put it there (`ls -l {_quoted(path)}`), remove it, and let the driver make"
            " the device",
        )
    return None, None


def _permissions_problem(device: DeviceSpec, found: HostPath | None) -> _Problem:
    asked = device.permissions
    if not asked or set(asked) - set("rwm"):
        return (
            f"asks for the permissions {asked!r}, which are letters of r, w and m: the container"
            " cannot start, or cannot open it",
            _REPORT,
        )
    if found is None or found.kind not in _DEVICES or found.mode is None:
        return None, None
    bits = {"r": 0o444, "w": 0o222}
    lacking = [letter for letter in bits if letter in asked and not found.mode & bits[letter]]
    if lacking:
        return (
            f"present, but its mode {found.mode:04o} gives nobody {' and '.join(lacking)}: only"
            " root with CAP_DAC_OVERRIDE gets it",
            f"`chmod` it, or mend the udev rule that made {device.host_path}",
        )
    return None, None


def _link_problem(path: str, found: HostPath) -> _Problem:
    if found.linked is not False:
        return None, None
    link = f"/dev/{'block' if found.kind == 'block device' else 'char'}/{found.number}"
    return (
        f"present, but {link} does not lead to it: with the systemd cgroup driver the container"
        " loses it at `systemctl daemon-reload`",
        f"`ln -s {_quoted(path)} {link}`, at every boot (NVIDIA: `nvidia-ctk system"
        " create-dev-char-symlinks --create-all`)",
    )


def _wants(answer: AllocResponse) -> dict[_Place, object]:
    wants: dict[_Place, object] = {}
    for what, texts in (("annotation", answer.annotations), ("environment variable", answer.envs)):
        for key, text in texts.items():
            wants[what, key] = text
    for mount in answer.mounts:
        wants.setdefault(("mount", mount.container_path), (mount.host_path, mount.read_only))
    for node in answer.device_specs:
        wants.setdefault(("device node", node.container_path), (node.host_path, node.permissions))
    return wants


def _quoted(path: str) -> str:
    from shlex import quote  # only where something is wrong

    return quote(path)
