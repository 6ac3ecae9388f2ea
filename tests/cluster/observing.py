"""All that a node shows after a step, as one document that can be held against another's.

Only what has to differ is put alike: UIDs become `<uid of POD>`, the lab's directory the real one,
times and identities of containers are left out, and what the kubelet hands out in changing order
(Go maps) is sorted.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict

from dpctl.pb.deviceplugin.v1beta1 import deviceplugin_pb2 as pb
from dpctl.pb.podresources.v1 import podresources_pb2 as v1
from dpctl.pb.podresources.v1 import podresources_pb2_grpc as v1_rpc
from dpctl.pb.podresources.v1alpha1 import podresources_pb2 as v1alpha1
from dpctl.pb.podresources.v1alpha1 import podresources_pb2_grpc as v1alpha1_rpc
from dpctl.statefiles.device_checkpoint import parse_checkpoint

from .api import JSON
from .plugins import PLUGIN_DIR
from .processes import wait_for
from .sides import MARKER, OVER, Side

CHECKPOINT = "kubelet_internal_checkpoint"


def observe(side: Side) -> JSON:
    """What the node shows now."""
    pods = side.get_pods()
    found: JSON = {
        "answers": dict(side.answers),
        "node": _node(side.get_node()),
        "pods": {name: _pod(pod) for name, pod in pods.items()},
        "warnings": _warnings(side),
        "directory": _directory(side),
        "checkpoint": _checkpoint(side),
        "podresources": _pod_resources(side, pods),
    }
    return _alike(side, found)  # type: ignore[no-any-return]


def _alike(side: Side, value: Any) -> Any:
    """Without UIDs, and with the real directory."""
    if isinstance(value, dict):
        return {_alike(side, key): _alike(side, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_alike(side, item) for item in value]
    if isinstance(value, str):
        for uid, name in side.uids.items():
            value = value.replace(uid, f"<uid of {name}>")
        return value.replace(str(side.machine.device_plugins), PLUGIN_DIR)
    return value


# --- the API server's


def _node(node: JSON) -> JSON:
    status = node["status"]
    owners: dict[str, list[str]] = {}
    for entry in node["metadata"].get("managedFields", []):
        of_status = entry["fieldsV1"].get("f:status", {})
        for part in ("capacity", "allocatable"):
            for field in of_status.get(f"f:{part}", {}):
                key = f"{part} {field.removeprefix('f:')}"
                owners.setdefault(key, []).append(entry["manager"])
    return {
        **{
            part: {key: amount for key, amount in status[part].items() if key != MARKER}
            for part in ("capacity", "allocatable")
        },
        # Of cpu it depends on the kubelets before: who changes a number owns it.
        "owners": {k: sorted(v) for k, v in owners.items() if "/" in k and not k.endswith(MARKER)},
        "conditions": _conditions(status),
    }


def _conditions(status: JSON) -> JSON:
    times = ("lastHeartbeatTime", "lastTransitionTime", "lastProbeTime")
    return {
        condition["type"]: {
            key: value for key, value in condition.items() if key not in (*times, "type")
        }
        for condition in status.get("conditions") or []
    }


def _pod(pod: JSON) -> JSON:
    status = pod["status"]
    found = {key: status.get(key) for key in ("phase", "reason", "message", "qosClass")}
    found["deleted"] = "deletionTimestamp" in pod["metadata"]
    found["conditions"] = _conditions(status)
    for part in ("initContainerStatuses", "containerStatuses"):
        statuses = status.get(part)
        found[part] = statuses and {one["name"]: _container(one) for one in statuses}
        if found[part] and status["phase"] in OVER:
            # Told or not: as it falls out, whether the devices were released before the last word.
            for one in found[part].values():
                del one["allocatedResourcesStatus"]
    return found


def _container(status: JSON) -> JSON:
    found = {key: status.get(key) for key in ("image", "ready", "started", "restartCount")}
    for key in ("state", "lastState"):
        found[key] = {
            kind: {k: v for k, v in one.items() if not k.endswith("At") and k != "containerID"}
            for kind, one in (status.get(key) or {}).items()
        }
    health = status.get("allocatedResourcesStatus")
    found["allocatedResourcesStatus"] = health and {
        one["name"]: _sorted(one["resources"]) for one in health
    }
    return found


def _warnings(side: Side) -> JSON:
    found: dict[str, list[JSON]] = {}
    for event in side.get_warnings():
        about = side.uids[event["involvedObject"]["uid"]]
        told = found.setdefault(about, [])
        warning = {
            "reason": event["reason"],
            "message": event["message"],
            "component": (event.get("source") or {}).get("component")
            or event.get("reportingComponent"),
        }
        if warning not in told:  # the scheduler repeats itself
            told.append(warning)
    return {name: _sorted(events) for name, events in found.items()}


# --- the directory's


def _directory(side: Side) -> JSON:
    found = {}
    for entry in os.scandir(side.machine.device_plugins):
        if not entry.name.startswith("."):
            found[entry.name] = stat.filemode(entry.stat().st_mode)
    return found


def _checkpoint(side: Side) -> JSON:
    data = (side.machine.device_plugins / CHECKPOINT).read_bytes()
    document = json.loads(data)
    parsed = parse_checkpoint(data)
    entries = document["Data"]["PodDeviceEntries"]
    return {
        "checksum": "verifies" if parsed.verified else "does not verify",
        "keys": [
            list(document),
            list(document["Data"]),
            *sorted({str(list(e)) for e in entries or []}),
        ],
        "entries": None
        if entries is None
        else {
            f"{entry['PodUID']} {entry['ContainerName']} {entry['ResourceName']}": {
                "devices": {numa: sorted(ids) for numa, ids in entry["DeviceIDs"].items()},
                "answer": _answer(one.alloc_resp),
            }
            for entry, one in zip(entries, parsed.allocations, strict=True)
        },
        "registered": {
            name: ids and sorted(ids) for name, ids in document["Data"]["RegisteredDevices"].items()
        },
        "end": data[-1:].decode(),
    }


def _answer(data: bytes | None) -> JSON | None:
    """The plugin's answer as the checkpoint keeps it; its length tells what was not understood."""
    if data is None:
        return None
    return {
        **_plain(pb.ContainerAllocateResponse.FromString(data)),
        "bytes": len(data),
    }


# --- PodResources


def _pod_resources(side: Side, pods: Mapping[str, JSON]) -> JSON:
    if not side.running:
        return {}
    target = f"unix:{side.machine.pod_resources}"
    options = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(target, options) as channel:
        new = v1_rpc.PodResourcesListerStub(channel)  # type: ignore[no-untyped-call]
        old = v1alpha1_rpc.PodResourcesListerStub(channel)  # type: ignore[no-untyped-call]
        named = {name: pod["metadata"]["name"] for name, pod in pods.items()}
        return {
            "v1": _by_pod(_call(new.List, v1.ListPodResourcesRequest())),
            "v1alpha1": _by_pod(_call(old.List, v1alpha1.ListPodResourcesRequest())),
            "allocatable": _call(new.GetAllocatableResources, v1.AllocatableResourcesRequest()),
            "get": {
                name: _call(
                    new.Get, v1.GetPodResourcesRequest(pod_name=real, pod_namespace="default")
                )
                for name, real in {**named, "nobody": "nobody"}.items()
            },
        }


def _call(method: Callable[..., Any], request: Any) -> Any:
    """The answer, or the error's code and text; a refusal by the rate limit is none."""

    def probe() -> Any:
        try:
            return _plain(method(request, timeout=10))
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
                return None
            return f"{error.code().name} {error.details()}"

    return wait_for(
        "an answer inside the rate limit", lambda: [a] if (a := probe()) is not None else None
    )[0]


def _by_pod(answer: Any) -> Any:
    """The pods of a list by name; a list, lest two of one name pass for one."""
    if not isinstance(answer, dict):
        return answer
    found: dict[str, Any] = {}
    for pod in answer["pod_resources"]:
        found.setdefault(f"{pod['namespace']}/{pod['name']}", []).append(pod)
    return {**answer, "pod_resources": found}


def _plain(message: Any) -> JSON:
    """With every field: NUMA node 0 is a node. Absent messages stay absent."""
    found = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return _unordered(found)  # type: ignore[no-any-return]


def _unordered(value: Any) -> Any:
    """Lists without order sorted; containers keep theirs."""
    if isinstance(value, dict):
        return {
            key: _sorted(_unordered(item))
            if isinstance(item, list) and key != "containers"
            else _unordered(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_unordered(item) for item in value]
    return value


def _sorted(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
