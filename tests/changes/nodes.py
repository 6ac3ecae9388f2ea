"""An API server of the lab with as many Nodes as a test likes, in this process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpctl.lab import api_auth
from dpctl.lab.api_handlers import Answer, Call, Handlers, Watch
from dpctl.lab.api_server import ApiServer
from dpctl.lab.api_store import Store
from dpctl.sources.apiserver import Api, connect
from tests.fakes.kubeconfigs import env_for, kubeconfig

OLD = "old.example/retired"


class Counting(Handlers):
    """Counts what succeeded, by method and path; `before` is called for every request."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, version="v1.37.2", configz={})
        self.done: Counter[tuple[str, str]] = Counter()
        self.before: Any = lambda call: None
        self.after: Any = lambda call: None
        self._counting = threading.Lock()

    def handle(self, call: Call) -> Answer | Watch:
        self.before(call)
        answer = super().handle(call)
        with self._counting:
            self.done[call.method, call.path] += 1
        self.after(call)
        return answer


class Nodes:
    def __init__(self, directory: Path) -> None:
        self.store = Store()
        self.handlers = Counting(self.store)
        self.server = ApiServer(self.store, api_auth.users("n-0"), self.handlers)
        url = f"http://127.0.0.1:{self.server.port}"
        self.kubeconfig = kubeconfig(directory / "kubeconfig", url, {"token": "admin"})
        self.env = {"KUBECONFIG": self.kubeconfig, "XDG_STATE_HOME": str(directory / "state")}

    def api(self, **options: Any) -> Api:
        return connect(env_for(self.kubeconfig), **options)

    def add(self, *numbers: int, keys: Mapping[str, str] | None = None, **labels: str) -> None:
        """Nodes `n-NUMBER`; without `keys`, with the dead one at 0."""
        for number in numbers:
            amounts = {"cpu": "4", **({OLD: "0"} if keys is None else keys)}
            node = {"metadata": {"name": f"n-{number}", "labels": labels}, "spec": {}}
            created = self.store.create("nodes", node, "kubelet")

            def fill(found: dict[str, Any], amounts: Any = amounts) -> dict[str, Any]:
                found["status"] = {"capacity": dict(amounts), "allocatable": dict(amounts)}
                return found

            name = created["metadata"]["name"]
            self.store.update("nodes", name, fill, manager="kubelet", subresource="status")

    def add_pod(self, name: str, node: str | None, resource: str, phase: str = "Running") -> None:
        requests = {"requests": {resource: "1"}}
        spec = {"nodeName": node, "containers": [{"name": "c", "resources": requests}]}
        meta = {"namespace": "ml", "name": name}
        self.store.create("pods", {"metadata": meta, "spec": spec}, "test")

        def fill(found: dict[str, Any]) -> dict[str, Any]:
            found["status"] = {"phase": phase}
            return found

        self.store.update("pods", name, fill, namespace="ml", manager="test", subresource="status")

    def set_key(self, node: str, key: str, text: str | None, manager: str = "kubelet") -> None:
        def change(found: dict[str, Any]) -> dict[str, Any]:
            for part in ("capacity", "allocatable"):
                if text is None:
                    found["status"][part].pop(key, None)
                else:
                    found["status"][part][key] = text
            return found

        self.store.update("nodes", node, change, manager=manager, subresource="status")

    def keys(self) -> dict[str, str | None]:
        """Node to the dead key's capacity; None: no such key."""
        items, _ = self.store.list("nodes")
        return {n["metadata"]["name"]: n["status"]["capacity"].get(OLD) for n in items}

    def patches(self) -> Counter[str]:
        """Successful patches by Node."""
        return Counter(
            {
                path.split("/")[4]: count
                for (method, path), count in self.handlers.done.items()
                if method == "PATCH"
            }
        )


@contextmanager
def running(directory: Path) -> Iterator[Nodes]:
    nodes = Nodes(directory)
    try:
        yield nodes
    finally:
        nodes.server.close()
