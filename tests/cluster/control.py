"""The control plane: etcd, API server and scheduler of the newest minor, on 127.0.0.1.

There is no controller manager: nothing taints nodes, makes service accounts or collects garbage,
so the admission plugins that count on it are off.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import time

from . import build, slots
from .plane import ADMIN, NO_RIGHTS, NODE_NAMES, USERS, Plane
from .processes import ClusterError

PROGRAMS = ("etcd", "containerd", "ctr", "runc", "openssl", "nsenter", "unshare", "gcc", "ip")


def check_programs() -> None:
    """Fail when something that the tests run is not installed."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise ClusterError(f"not installed: {', '.join(missing)}")


class ControlPlane(Plane):
    """A plane that this process starts and ends, with everything under it."""

    def __init__(self) -> None:
        check_programs()
        self.slot = slots.acquire()
        ports = [self.slot.place.port() for _ in range(3)]
        self._etcd_urls = [f"http://127.0.0.1:{port}" for port in ports[1:]]
        tokens = {user: secrets.token_hex(16) for user in USERS}
        try:
            super().__init__(self.slot.place, f"https://127.0.0.1:{ports[0]}", tokens)
        except BaseException:
            self.slot.release()
            raise
        self.seconds_to_start = 0.0
        self._waiting = threading.Lock()  # nodes may be started from several threads

    def __enter__(self) -> ControlPlane:
        """Start it; nodes wait for it where they need it, so that both start side by side."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start etcd and the API server without waiting for them."""
        self._started = time.monotonic()
        self._write_files()
        client, peer = self._etcd_urls
        etcd = [
            *("etcd", "--name=test", f"--data-dir={self.path}/etcd", "--unsafe-no-fsync"),
            *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
            *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
            f"--initial-cluster=test={peer}",
        ]
        self.daemon("etcd", etcd).start()
        self.daemon("kube-apiserver", self._api_server_command(client)).start()

    def wait_ready(self) -> None:
        """Wait until the API server is ready, then start the scheduler."""
        with self._waiting:
            if "kube-scheduler" not in self.daemons:
                super().wait_ready()
                self._schedule()

    def stop(self) -> None:
        """Kill and remove everything, nodes included."""
        self.slot.release()
        for daemon in self.daemons.values():
            daemon.reap()

    def _schedule(self) -> None:
        self.kubeconfig(NO_RIGHTS)
        scheduler = [
            *(str(self.bin / "kube-scheduler"), f"--kubeconfig={self.kubeconfig(ADMIN)}"),
            *("--leader-elect=false", "--secure-port=0"),
        ]
        self.daemon("kube-scheduler", scheduler).start()
        self.seconds_to_start = time.monotonic() - self._started

    def _write_files(self) -> None:
        self.pki.mkdir(mode=0o700)
        key = [*("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30")]
        names = ["-subj", "/O=system:masters/CN=kube-apiserver"]
        files = ["-keyout", str(self.pki / "client.key"), "-out", str(self.client_certificate)]
        build.output_of("making a certificate", [*key, *names, *files])
        lines = []
        for user, token in self.tokens.items():
            group = {ADMIN: "system:masters", NO_RIGHTS: ""}.get(user, "system:nodes")
            lines.append(f'{token},{user},{user},"{group}"' if group else f"{token},{user},{user}")
        (self.pki / "tokens.csv").write_text("\n".join(lines) + "\n")
        hosts = ["127.0.0.1 localhost", *(f"127.0.0.1 {name}" for name in NODE_NAMES)]
        (self.path / "hosts").write_text("\n".join(hosts) + "\n")

    def _api_server_command(self, etcd: str) -> list[str]:
        host, port = self.server.removeprefix("https://").split(":")
        return [
            # Kubelets listen on 127.0.0.1 only, which a Node's address never says. So the server
            # goes by the host name, and has a hosts file of its own that knows them.
            *("unshare", "--mount", "--propagation", "slave", "sh", "-c"),
            'mount --bind "$0" /etc/hosts && exec "$@"',
            str(self.path / "hosts"),
            str(self.bin / "kube-apiserver"),
            *(f"--etcd-servers={etcd}", f"--bind-address={host}", f"--secure-port={port}"),
            *(f"--advertise-address={host}", "--endpoint-reconciler-type=none"),
            *(f"--cert-dir={self.pki}", f"--token-auth-file={self.pki}/tokens.csv"),
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            # The latter gives a new Node a taint that only the controller manager takes away.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            f"--service-account-key-file={self.pki}/client.key",
            f"--service-account-signing-key-file={self.pki}/client.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--kubelet-preferred-address-types=Hostname",
            f"--kubelet-client-certificate={self.client_certificate}",
            f"--kubelet-client-key={self.pki}/client.key",
        ]
