"""The control plane: etcd, API server and scheduler of the newest minor, on 127.0.0.1.

It serves kubelets up to three minors older. There is no controller manager: nothing taints nodes,
makes service accounts or collects garbage, so the admission plugins that count on it are off.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import threading
import time
import urllib.error
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import build, cgroups, slots
from .api import Api, ApiError
from .processes import ClusterError, Daemon, wait_for

ADMIN = "admin"
NO_RIGHTS = "nobody"
NODE_NAMES = tuple(f"worker-{number}" for number in range(16))
PROGRAMS = ("etcd", "containerd", "ctr", "runc", "openssl", "nsenter", "unshare", "gcc")


class ControlPlane:
    """One API server and what belongs to it; nodes are added by making `Node`s."""

    def __init__(self) -> None:
        missing = [program for program in PROGRAMS if shutil.which(program) is None]
        if missing:
            raise ClusterError(f"not installed: {', '.join(missing)}")
        # The newest minor is built before anything is started: that can take minutes.
        self.minor = build.minors()[-1]
        self.bin = build.binaries(self.minor)
        self.slot = slots.acquire()
        self.path = self.slot.path
        self.groups = cgroups.make(f"{self.slot.cgroup}/p")
        self.pki = self.path / "pki"
        self.server = f"https://127.0.0.1:{self.slot.port()}"
        self._etcd_urls = [f"http://127.0.0.1:{self.slot.port()}" for _ in range(2)]
        self._tokens = {
            name: secrets.token_hex(16)
            for name in (ADMIN, NO_RIGHTS, *(f"system:node:{node}" for node in NODE_NAMES))
        }
        self.daemons: dict[str, Daemon] = {}
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
                self._wait_and_schedule()

    def stop(self) -> None:
        """Kill and remove everything, nodes included."""
        self.slot.release()
        for daemon in self.daemons.values():
            daemon.reap()

    def api(self, user: str = ADMIN) -> Api:
        """The API as one user sees it: `admin`, `nobody` or `system:node:worker-N`."""
        return Api(self.server, self._tokens[user], self.pki / "apiserver.crt")

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """Where that user's kubeconfig file is."""
        return self.path / f"{user.removeprefix('system:node:')}.kubeconfig"

    def kubectl(self, *args: str, user: str = ADMIN) -> str:
        """What kubectl prints."""
        done = subprocess.run(
            [str(self.bin / "kubectl"), f"--kubeconfig={self.kubeconfig(user)}", *args],
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

    def _wait_and_schedule(self) -> None:
        needs = [self.daemons["etcd"], self.daemons["kube-apiserver"]]
        wait_for("the API server", self._is_ready, 90, needs)
        kubeconfig = self.api().write_kubeconfig(self.kubeconfig(ADMIN), ADMIN)
        self.api(NO_RIGHTS).write_kubeconfig(self.kubeconfig(NO_RIGHTS), NO_RIGHTS)
        scheduler = [
            *(str(self.bin / "kube-scheduler"), f"--kubeconfig={kubeconfig}"),
            *("--leader-elect=false", "--secure-port=0"),
        ]
        self.daemon("kube-scheduler", scheduler).start()
        self.seconds_to_start = time.monotonic() - self._started

    def _is_ready(self) -> bool:
        try:
            # Pods need the namespace, which the server makes for itself a moment after /readyz.
            self.api().get("/api/v1/namespaces/default")
            return self.api().text("GET", "/readyz") == "ok"
        except (OSError, urllib.error.URLError, ApiError):
            return False

    def _write_files(self) -> None:
        self.pki.mkdir(mode=0o700)
        # It signs service-account tokens, and is the API server's identity towards kubelets.
        self.client_certificate = self.pki / "client.crt"
        key = [*("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30")]
        names = ["-subj", "/O=system:masters/CN=kube-apiserver"]
        files = ["-keyout", str(self.pki / "client.key"), "-out", str(self.client_certificate)]
        subprocess.run([*key, *names, *files], check=True, capture_output=True)
        lines = []
        for user, token in self._tokens.items():
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
