"""Pods for tests, in few words."""

from __future__ import annotations

from collections.abc import Mapping

from dpctl.model import Pod, PodContainer

Amounts = Mapping[str, str]


def container(
    name: str, limits: Amounts, kind: str = "app", requests: Amounts | None = None
) -> PodContainer:
    return PodContainer(name, kind, {**limits, **(requests or {})}, limits, None, None, ())


def pod(*containers: PodContainer | Amounts, pod_requests: Amounts | None = None) -> Pod:
    """App containers `c0`, `c1`… of limits, or containers as they are."""
    found = tuple(
        each if isinstance(each, PodContainer) else container(f"c{at}", each)
        for at, each in enumerate(containers)
    )
    return Pod(
        namespace="default",
        name="p",
        uid="u",
        config_hash=None,
        node_name=None,
        phase="Pending",
        reason=None,
        message=None,
        deleted=False,
        containers=found,
        pod_requests=pod_requests or {},
        overhead={},
        owner=None,
    )


def exact(cpu: int, memory: str = "1Gi", **more: str) -> dict[str, str]:
    """Limits of a Guaranteed container; `gpu="1"` is `v.example/gpu`."""
    return {
        "cpu": str(cpu),
        "memory": memory,
        **{f"v.example/{name}": amount for name, amount in more.items()},
    }
