"""What flags gave (`Settings`), one path with its origin (`Place`), and all of them (`Env`).

Data only: no detection, no reading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dpctl.model.rows import EnvRow

DEFAULT_TIMEOUT = 5.0
DEFAULT_MESSAGE_SIZE = 64 << 20


class Settings(NamedTuple):
    """The flags of one run; None: not given."""

    kubelet_root: str | None = None
    device_plugin_dir: str | None = None
    pod_resources_socket: str | None = None
    host_root: str | None = None
    bundle: str | None = None
    """`--from`: a directory or a `.tgz`."""
    kubeconfig: str | None = None
    context: str | None = None
    as_user: str | None = None
    as_groups: tuple[str, ...] | None = None
    node_name: str | None = None
    request_timeout: float | None = None
    """Seconds for one call."""
    max_message_size: int | None = None
    """Bytes."""
    no_allocatable: bool | None = None


class Place(NamedTuple):
    """One path or name, and where it came from."""

    name: str
    """Of the flag, without dashes in front: `kubelet-root`."""
    value: str | None
    """None: there is none (the note or `tried` says why)."""
    origin: str
    """`flag`, `environment NAME`, `config FILE`, `kubelet PID`, `layout NAME`, `host name`,
    `certificate PATH`, `in-cluster`, `bundle`, `default`."""
    tried: tuple[str, ...] = ()
    """Paths that were looked at, in order; empty when somebody named the path."""
    note: str | None = None


class Env(NamedTuple):
    """Every place that sources read, decided once per run.

    With `--from` every local path is the bundle's (below its name, also where the bundle is an
    archive), and `live` is false.
    """

    host_root: Place
    bundle: Place
    kubelet_root: Place
    device_plugin_dir: Place
    pod_resources_socket: Place
    plugins_registry: Place
    pod_logs: Place
    proc: Place
    sys: Place
    kubelet_config: Place
    kubeconfig: Place
    """A path, several with `:` between them (KUBECONFIG), or None; origin `in-cluster`: None, and
    the service account of the pod that dpctl runs in."""
    context: Place
    node_name: Place
    as_user: str | None = None
    as_groups: tuple[str, ...] = ()
    request_timeout: float = DEFAULT_TIMEOUT
    max_message_size: int = DEFAULT_MESSAGE_SIZE
    no_allocatable: bool = False
    others: tuple[Place, ...] = ()
    """The settings above that are no paths, with their origins, for `rows` alone."""

    @property
    def live(self) -> bool:
        """Whether this machine is read, not a bundle."""
        return self.bundle.value is None

    def rows(self) -> tuple[EnvRow, ...]:
        """All of it for `dpctl env`; looks whether the paths exist."""
        from dpctl.env.reading import exists
        from dpctl.model.rows import EnvRow

        paths = (
            self.host_root,
            self.bundle,
            self.kubelet_root,
            self.device_plugin_dir,
            self.pod_resources_socket,
            self.plugins_registry,
            self.pod_logs,
            self.proc,
            self.sys,
            self.kubelet_config,
            self.kubeconfig,
        )

        def there(place: Place) -> bool | None:
            if place.value is None or (place is not self.bundle and not self.live):
                return None  # what is inside an archive only its reader can tell
            if place is self.kubeconfig:
                return any(exists(path) for path in place.value.split(":") if path)
            return exists(place.value)

        return tuple(
            EnvRow(place.name, place.value, place.origin, known, place.tried, place.note)
            for place, known in (
                *((place, there(place)) for place in paths),
                *((place, None) for place in (self.context, self.node_name, *self.others)),
            )
        )
