"""Which pod a UID is, and whether it still counts: the join of PodResources (names), checkpoint
(UIDs), log directories (both) and the API server (both, with phases).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from dpctl.model import Pod, PodHolding, PodName, Snapshot
from dpctl.model.node import minor_version


class PodIdentity(NamedTuple):
    namespace: str | None
    name: str | None
    uid: str | None
    active: bool | None
    """Holds its devices still; None: cannot be told."""


class Pods:
    """Lookup tables over one snapshot; made once per join."""

    def __init__(self, snap: Snapshot) -> None:
        self._by_uid: dict[str, Pod] = {}
        self._by_name: dict[tuple[str, str], Pod] = {}
        for pod in snap.pods or ():
            self._by_uid[pod.uid] = pod
            if pod.config_hash:  # a static pod: the kubelet uses the manifest's hash as UID
                self._by_uid[pod.config_hash] = pod
            self._by_name[pod.namespace, pod.name] = pod
        # The kubelet itself comes first: it knows static pods by the UID that its files have.
        self._kubelet = {pod.uid: pod for pod in snap.kubelet_pods or ()}
        self._kubelet_read = snap.kubelet_pods is not None
        self._dirs = None if snap.pod_dirs is None else frozenset(snap.pod_dirs)
        self._logs = {name.uid: name for name in snap.pod_names or ()}
        self._uids_of_log: dict[tuple[str, str], list[str]] = {}
        for log in snap.pod_names or ():
            self._uids_of_log.setdefault((log.namespace, log.name), []).append(log.uid)
        self._listed: dict[tuple[str, str], PodHolding] = {}
        if snap.pod_resources is not None:
            self._listed = {(p.namespace, p.name): p for p in snap.pod_resources.pods}
        self._list_read = snap.pod_resources is not None
        listed_uids = (uid for pod in self._listed for uid in self._uids_of_log.get(pod, ()))
        self._kubelet_was_told = any(map(_is_of_the_api, (*self._kubelet, *listed_uids)))
        """The kubelet knows pods of the API server. After a restart it has none of them until it
        has asked, which may take as long as the API server is down: what it does not list then is
        not gone."""
        self._holding_uids = _holding_uids(snap)
        self._contradicted = _contradicted(snap, self._listed, self._logs)
        self._matched = {} if self._by_uid else _match_uids(self._holding_uids)
        self._api_read = snap.pods is not None
        version = snap.node.kubelet_version if snap.node else snap.kubelet_version
        self._list_is_active = (
            snap.pod_resources is not None
            and snap.pod_resources.version == "v1"
            and (minor_version(version) or 0) >= 34
        )

    def by_uid(self, uid: str) -> PodIdentity:
        """The pod of a checkpoint entry."""
        own = self._kubelet.get(uid)
        if own is not None:
            active = not own.terminal or self._still_listed(own.namespace, own.name)
            return PodIdentity(own.namespace, own.name, uid, active)
        found = self._without_the_kubelet(uid)
        if (self._kubelet_read and self._kubelet_was_told) or (
            self._dirs is not None and uid not in self._dirs
        ):
            return found._replace(active=False)
        return found

    def _without_the_kubelet(self, uid: str) -> PodIdentity:
        pod = self._by_uid.get(uid)
        if pod is not None:
            return PodIdentity(pod.namespace, pod.name, uid, self._active(pod))
        log = self._logs.get(uid)
        if log is not None:
            return PodIdentity(log.namespace, log.name, uid, self._active_by_name(log))
        if self._api_read:
            return PodIdentity(None, None, uid, False)
        if uid in self._matched:
            namespace, name = self._matched[uid]
            return PodIdentity(namespace, name, uid, True)
        # No log directory at all says more about where logs are kept than about the pod.
        gone = False if self._logs and self._list_read else None
        return PodIdentity(None, None, uid, gone)

    def by_name(self, namespace: str, name: str) -> PodIdentity:
        """The pod of a PodResources entry."""
        pod = self._by_name.get((namespace, name))
        if pod is not None:
            return PodIdentity(namespace, name, pod.config_hash or pod.uid, self._active(pod))
        uid = self._uid_of_listed((namespace, name))
        # The kubelet lists it and the API server was not asked, or does not have it yet: it counts.
        return PodIdentity(namespace, name, uid, True)

    def pod(self, namespace: str | None, name: str | None) -> Pod | None:
        return None if namespace is None or name is None else self._by_name.get((namespace, name))

    def kind(self, who: PodIdentity, container: str, *, listed: bool) -> str | None:
        """`init`, `sidecar`, `app`; without the API server `init` for what only the checkpoint has
        of a pod that List shows, else None."""
        pod = self.pod(who.namespace, who.name)
        if pod is not None:
            return next((c.kind for c in pod.containers if c.name == container), None)
        if listed or who.namespace is None or who.name is None:
            return None
        holding = self._listed.get((who.namespace, who.name))
        return "init" if holding is not None else None

    def _active(self, pod: Pod) -> bool:
        return not pod.terminal or self._still_listed(pod.namespace, pod.name)

    def _still_listed(self, namespace: str, name: str) -> bool:
        """A finished pod that still holds: from 1.34 on List has active pods only."""
        return self._list_is_active and (namespace, name) in self._listed

    def _uid_of_listed(self, key: tuple[str, str]) -> str | None:
        uids = self._uids_of_log.get(key, [])
        if len(uids) > 1:
            uids = [uid for uid in uids if (uid, *key) in self._holding_uids]
        return uids[0] if len(uids) == 1 else None

    def _active_by_name(self, log: PodName) -> bool | None:
        key = (log.namespace, log.name)
        if self._api_read:
            return False  # the API server does not have this UID: a pod of the same name is another
        if self._list_read:
            if key not in self._listed:
                return False if self._kubelet_was_told else None
            if len(self._uids_of_log[key]) == 1 or (log.uid, *key) in self._holding_uids:
                return True
            # Logs of a deleted pod outlive it, so several UIDs may have this name: one whose entry
            # is for a container that List has without the device is another pod.
            return False if (log.uid, *key) in self._contradicted else None
        return None


def in_doubt(snap: Snapshot) -> bool:
    """The kubelet answers, and of a pod that the checkpoint has it cannot be told whether it is
    gone, or the kubelet has not heard of it yet."""
    if snap.pod_resources is None or snap.checkpoint is None:
        return False
    pods = Pods(snap)
    uids = {entry.pod_uid for entry in snap.checkpoint.allocations}
    return any(pods.by_uid(uid).active is None for uid in uids)


def _is_of_the_api(uid: str) -> bool:
    """A UUID with its dashes; a static pod has the bare hash of its manifest."""
    return "-" in uid


def _holding_uids(snap: Snapshot) -> frozenset[tuple[str, str, str]]:
    """(UID, namespace, name): checkpoint's UID and List's pod share a device of one container."""
    held = _listed_devices(snap)
    return frozenset(
        (entry.pod_uid, *pod)
        for entry in (snap.checkpoint.allocations if snap.checkpoint else ())
        for device_id in entry.device_nodes()
        for pod in held.get((entry.container, entry.resource, device_id), ())
    )


def _contradicted(
    snap: Snapshot, listed: Mapping[tuple[str, str], PodHolding], logs: Mapping[str, PodName]
) -> frozenset[tuple[str, str, str]]:
    """(UID, namespace, name): the checkpoint has a device for a container of that UID, List has the
    container under the name that the UID's logs have, and not the device."""
    found: set[tuple[str, str, str]] = set()
    held = _listed_devices(snap)
    for entry in snap.checkpoint.allocations if snap.checkpoint else ():
        log = logs.get(entry.pod_uid)
        pod = listed.get((log.namespace, log.name)) if log is not None else None
        if pod is None or all(c.name != entry.container for c in pod.containers):
            continue
        key = (pod.namespace, pod.name)
        if any(
            key not in held.get((entry.container, entry.resource, device_id), ())
            for device_id in entry.device_nodes()
        ):
            found.add((entry.pod_uid, *key))
    return frozenset(found)


def _listed_devices(snap: Snapshot) -> dict[tuple[str, str, str], set[tuple[str, str]]]:
    """(container, resource, device ID) to the pods that List shows it in."""
    held: dict[tuple[str, str, str], set[tuple[str, str]]] = {}
    for pod in snap.pod_resources.pods if snap.pod_resources else ():
        for container in pod.containers:
            for device in container.devices:
                key = (container.name, device.resource, device.device_id)
                held.setdefault(key, set()).add((pod.namespace, pod.name))
    return held


def _match_uids(
    holding_uids: frozenset[tuple[str, str, str]],
) -> dict[str, tuple[str, str]]:
    """UIDs of the checkpoint to pods of List by what their containers hold: the last resort.

    A dead pod's entry may name a device that another pod holds by now, so a pod that two UIDs could
    be is left unnamed.
    """
    candidates: dict[str, set[tuple[str, str]]] = {}
    for uid, namespace, name in holding_uids:
        candidates.setdefault(uid, set()).add((namespace, name))
    single = {uid: next(iter(pods)) for uid, pods in candidates.items() if len(pods) == 1}
    claims = Counter(single.values())
    return {uid: pod for uid, pod in single.items() if claims[pod] == 1}
