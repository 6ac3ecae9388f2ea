"""Pods for tests: their manifests, and making, finding and removing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import images
from .api import JSON, Api
from .processes import wait_for

Pod = dict[str, Any]


def manifest(
    name: str,
    node: str,
    resources: Mapping[str, str | int] | None = None,
    *,
    containers: Mapping[str, Mapping[str, str | int]] | None = None,
    init_containers: Mapping[str, Mapping[str, str | int]] | None = None,
    image: str = images.PAUSE,
    scheduled: bool = True,
    **spec: object,
) -> Pod:
    """A pod on `node` with one container `main` that has `resources` as requests and limits.

    `containers` and `init_containers` map names to resources instead; init containers end at
    once. With `scheduled=False` the scheduler is left out, so that the kubelet has to refuse what
    does not fit. `spec` adds fields to the pod's spec.
    """
    mains = containers if containers is not None else {"main": resources or {}}
    body: Pod = {
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "dnsPolicy": "Default",
        "restartPolicy": "Always" if image == images.PAUSE else "Never",
        # No controller manager keeps the taints of nodes, so none may be in the way.
        "tolerations": [{"operator": "Exists"}],
        "containers": [_container(n, image, r) for n, r in mains.items()],
    }
    if init_containers:
        body["initContainers"] = [_container(n, images.TRUE, r) for n, r in init_containers.items()]
    if scheduled:
        body["nodeSelector"] = {"kubernetes.io/hostname": node}
    else:
        body["nodeName"] = node
    body.update(spec)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def _container(name: str, image: str, resources: Mapping[str, str | int]) -> JSON:
    amounts = {resource: str(amount) for resource, amount in resources.items()}
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "Never",
        "resources": {"requests": amounts, "limits": amounts},
    }


def create(api: Api, pod: Pod, namespace: str = "default") -> None:
    """Create it."""
    api.create(f"/api/v1/namespaces/{namespace}/pods", pod)


def find(api: Api, name: str, namespace: str = "default") -> Pod | None:
    """The pod as the API server has it, or None."""
    return api.find(f"/api/v1/namespaces/{namespace}/pods/{name}")


def wait_phase(
    api: Api, name: str, phase: str, namespace: str = "default", seconds: float = 60.0
) -> Pod:
    """Wait until the pod is in a phase: Running counts only when its containers are ready."""
    last: list[JSON] = []

    def probe() -> Pod | None:
        pod = find(api, name, namespace)
        if pod is None:
            return None
        status: JSON = pod.get("status", {})
        last[:] = [status]
        conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
        if phase == "Running" and conditions.get("Ready") != "True":
            return None
        return pod if status.get("phase") == phase else None

    try:
        return wait_for(f"pod {name} to be {phase}", probe, seconds)
    except Exception as error:
        error.add_note(f"last status: {last}")
        raise


def delete(api: Api, name: str, namespace: str = "default", seconds: float = 60.0) -> None:
    """Delete it and wait until it is gone."""
    api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}")
    wait_for(f"pod {name} to be gone", lambda: find(api, name, namespace) is None, seconds)
