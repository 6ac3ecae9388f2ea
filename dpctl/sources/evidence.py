"""What a node said, as a bundle keeps it: raw bytes by their name in the layout, and the Snapshot.

Filled while the node is read; what is written of it is `writer`'s to know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from dpctl.model import Snapshot, Source

CHECKPOINT = "device-plugins/kubelet_internal_checkpoint"
LIST = "podresources/list.binpb"
ALLOCATABLE = "podresources/allocatable.binpb"
NODE = "api/node.json"
PODS = "api/pods.json"
DEVICE_CLASSES = "api/deviceclasses.json"
LOG = "kubelet/device-lines.log"
OPENERS = "openers.json"


def state_file(source: Source) -> str:
    return f"kubelet/{source}"


class Evidence:
    """`keeps(NAME)` is handed to the reading of a source, which calls it with the bytes."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.pod_resources_version = "v1"
        self.snapshot = Snapshot(None, ())
        self.left_out: dict[str, str] = {}
        """Name of a file to why it was not even kept."""

    def keeps(self, name: str) -> Callable[[bytes], None]:
        def keep(data: bytes) -> None:
            self.files[name] = data

        return keep

    def keep_list(self, version: str, data: bytes) -> None:
        self.pod_resources_version = version
        self.files[LIST] = data

    def keep_tree(self, files: Mapping[str, bytes]) -> None:
        """Files by their path below /sys."""
        self.files.update((f"sys/{path}", data) for path, data in files.items())

    def keep_node(self, node: object) -> None:
        self.files[NODE] = _json(node)

    def keep_pods(self, pods: Iterable[object]) -> None:
        self.files[PODS] = _list(map(_lean, pods))

    def keep_device_classes(self, classes: Iterable[object]) -> None:
        self.files[DEVICE_CLASSES] = _list(classes)


def _lean(pod: object) -> object:
    """Without managedFields, a third of a pod: who wrote which field of a pod tells nothing here
    (of the Node it does)."""
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    if not isinstance(pod, dict) or not isinstance(metadata, dict):
        return pod
    return {**pod, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def _list(items: Iterable[object]) -> bytes:
    """One item at a time: 1 000 pods are 10 MB."""
    body = b",\n".join(map(_json, items))
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + body + b"\n]}\n"


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")
