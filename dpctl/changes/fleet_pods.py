"""The pods of a whole cluster, for changes of many Nodes: listed once, and anew when the list has
become old. Kept is only what requests an extended resource.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from dpctl.inventory.requests import requested_names
from dpctl.model import Pod

if TYPE_CHECKING:
    from dpctl.sources.apiserver import Api

_OLDEST = 30.0
# A list of 100 000 pods takes a while: it may be so many times older than the time it took.
_TIMES = 3.0


class Pods(NamedTuple):
    by_node: Mapping[str, tuple[Pod, ...]]
    unscheduled: tuple[Pod, ...]


class PodsLook:
    """Asked from several threads; one lists, the others wait for it."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._pods: Pods | None = None
        self._until = 0.0

    def fresh(self) -> Pods:
        """Never older than half a minute (or three times what listing takes). Raises what listing
        raises."""
        with self._lock:
            if self._pods is None or time.monotonic() > self._until:
                begun = time.monotonic()
                self._pods = self._read()
                took = time.monotonic() - begun
                self._until = begun + took + max(_OLDEST, _TIMES * took)
            return self._pods

    def _read(self) -> Pods:
        by_node: dict[str, list[Pod]] = {}
        unscheduled: list[Pod] = []
        for page in self._api.pod_pages():
            if page.first:
                by_node.clear()
                unscheduled.clear()
            for pod in page.pods:
                if pod.terminal or not requested_names(pod):
                    continue
                if pod.node_name is None:
                    unscheduled.append(pod)
                else:
                    by_node.setdefault(pod.node_name, []).append(pod)
        return Pods({name: tuple(pods) for name, pods in by_node.items()}, tuple(unscheduled))
