"""An API server under which nodes are made: what its users share, and how they reach it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import urllib3

from . import build, cgroups, slots
from .api import Api, ApiError
from .processes import ClusterError, Daemon, inside, wait_for

ADMIN = "admin"
NO_RIGHTS = "nobody"
# One process alone makes eight, two per minor; the others are for nodes that do not come up.
NODES_PER_PART = 12
NODE_NAMES = tuple(f"worker-{number}" for number in range(slots.PARTS * NODES_PER_PART))
USERS = (ADMIN, NO_RIGHTS, *(f"system:node:{name}" for name in NODE_NAMES))


class Seat(NamedTuple):
    """What another process of the same run needs to make nodes under the plane."""

    slot: int
    part: int
    """Keeps the processes' nodes and ports apart; 0 is who started the plane."""
    server: str
    tokens: dict[str, str]


class Plane:
    """A running API server, whichever process of the run has started it."""

    def __init__(self, place: slots.Place, server: str, tokens: Mapping[str, str]) -> None:
        # The newest minor's, since it serves kubelets up to three minors older.
        self.minor = build.minors()[-1]
        self.bin = build.binaries(self.minor)
        self.place = place
        self.path = place.path
        self.groups = cgroups.make(f"{place.cgroup}/p")
        self.pki = self.path / "pki"
        # It signs service-account tokens, and is the API server's identity towards kubelets.
        self.client_certificate = self.pki / "client.crt"
        self.server = server
        self.tokens = dict(tokens)
        self.daemons: dict[str, Daemon] = {}

    @classmethod
    def join(cls, seat: Seat) -> Plane:
        """The plane that another process of this run has started."""
        return cls(slots.Place(seat.slot, seat.part), seat.server, seat.tokens)

    def seat(self, part: int) -> Seat:
        """A place at this plane for another process."""
        return Seat(self.place.number, part, self.server, self.tokens)

    def node_name(self, number: int) -> str:
        """The name of this process's node of that number."""
        if number >= NODES_PER_PART:
            raise ClusterError(f"a process may make {NODES_PER_PART} nodes")
        return NODE_NAMES[self.place.part * NODES_PER_PART + number]

    def wait_ready(self) -> None:
        """Wait until nodes can register and pods be bound."""
        wait_for("the API server", self.is_ready, 90, list(self.daemons.values())[:2])

    def is_ready(self) -> bool:
        """Whether the API server serves."""
        try:
            # Pods need the namespace, which the server makes for itself a moment after /readyz.
            self.api().get("/api/v1/namespaces/default")
            return self.api().text("GET", "/readyz") == "ok"
        except (OSError, urllib3.exceptions.HTTPError, ApiError):
            return False

    def api(self, user: str = ADMIN) -> Api:
        """The API as one user sees it: `admin`, `nobody` or `system:node:worker-N`."""
        return Api(self.server, self.tokens[user], self.pki / "apiserver.crt")

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """That user's kubeconfig file, straight to the API server."""
        return self.write_kubeconfig(self.path, user, self.server)

    def write_kubeconfig(self, folder: Path, user: str, server: str) -> Path:
        """A kubeconfig file for that user in a folder, written when it is not there yet."""
        path = folder / f"{user.removeprefix('system:node:')}.kubeconfig"
        if not path.exists():
            api = Api(server, self.tokens[user], self.pki / "apiserver.crt")
            api.write_kubeconfig(path, user)
        return path

    def kubectl(self, *args: str, user: str = ADMIN) -> str:
        """What kubectl prints."""
        done = subprocess.run(
            inside(
                self.groups,
                [str(self.bin / "kubectl"), f"--kubeconfig={self.kubeconfig(user)}", *args],
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        if done.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(args)}: {done.stdout}")
        return done.stdout

    def daemon(
        self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None
    ) -> Daemon:
        """A process of this cluster, not started yet; it ends with the cluster."""
        if name in self.daemons:
            name = f"{name}-{len(self.daemons)}"
        log = self.path / "log" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        self.daemons[name] = Daemon(name, command, log, self.groups, env)
        return self.daemons[name]
