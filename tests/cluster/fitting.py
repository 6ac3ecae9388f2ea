"""A pod's case for `dpctl topology -f` and the kubelet: the same question, the same verdict.

Every case is asked of dpctl first, then created without the scheduler; what counts is whether the
kubelet admits it, with which reason and words, and from which devices it took.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from dpctl import cpuset
from dpctl.lab.spec import SampleDevice

from . import pods
from .bench import Bench
from .processes import wait_for
from .settings import KubeletSettings

AFFINITY, UNEXPECTED = "TopologyAffinityError", "UnexpectedAdmissionError"
NEVER = "never-there"
Amounts = Mapping[str, str | int]


def made(prefix: str, *numa: tuple[int, ...] | None) -> tuple[SampleDevice, ...]:
    return tuple(SampleDevice(f"{prefix}-{at}", nodes) for at, nodes in enumerate(numa))


class Case(NamedTuple):
    """A pod, and the word that is expected: `yes`, or the reason."""

    expected: str
    main: Amounts
    more: Amounts | None = None
    """A second container."""
    init: Amounts | None = None
    sidecar: Amounts | None = None
    """Starts before `init`."""

    @property
    def devices(self) -> dict[str, dict[str, int]]:
        """What each container asks for, by resource."""
        given = {"main": self.main, "more": self.more, "init": self.init, "sidecar": self.sidecar}
        return {
            container: {name: int(n) for name, n in amounts.items() if "/" in name}
            for container, amounts in given.items()
            if amounts is not None
        }

    def manifest(self, name: str, node: str) -> dict[str, Any]:
        containers = {"main": self.main, **({} if self.more is None else {"more": self.more})}
        inits = {"sidecar": self.sidecar, "init": self.init}
        pod = pods.manifest(
            name,
            node,
            containers=containers,
            init_containers={n: a for n, a in inits.items() if a is not None},
            scheduled=False,
        )
        spec = pod["spec"]
        for container in spec.get("initContainers", []):
            if container["name"] == "sidecar":
                container["restartPolicy"] = "Always"
                container["image"] = spec["containers"][0]["image"]
        # What is admitted gets its devices and CPUs and then waits for this volume. Nothing starts:
        # that would be most of what a case costs.
        spec["volumes"] = [{"name": NEVER, "hostPath": {"path": f"/{NEVER}", "type": "Directory"}}]
        for container in (*spec["containers"], *spec.get("initContainers", [])):
            container["volumeMounts"] = [{"name": NEVER, "mountPath": f"/{NEVER}"}]
        return pod


class Stage(NamedTuple):
    """Cases beside pods that hold something already (each is admitted, in this order)."""

    cases: Mapping[str, Case]
    holders: tuple[Amounts, ...] = ()


def exact(cpu: int, memory: str = "64Mi", **more: str | int) -> dict[str, str | int]:
    """A Guaranteed container; `gpu=2` is `fit.test/gpu: 2`."""
    return {"cpu": cpu, "memory": memory, **{f"fit.test/{k}": v for k, v in more.items()}}


def static(policy: str, scope: str = "container", **more: Any) -> KubeletSettings:
    """Both other managers static."""
    return KubeletSettings(policy, scope, cpu_policy="static", memory_policy="Static", **more)


def start_plugins(bench: Bench, offered: Mapping[str, Sequence[SampleDevice]]) -> None:
    """Start one plugin per resource; those of gpu have a preference."""
    for resource, listed in offered.items():
        bench.plugin(resource, listed, preferred=resource.endswith("/gpu"), wait=False)
    for plugin in bench.plugins:
        plugin.wait_registered()
        count = str(len(plugin.spec.devices))
        bench.node.wait_resource(plugin.spec.resource, count, needs=[plugin])


def assert_same_verdicts(bench: Bench, stages: Sequence[Stage]) -> None:
    """Ask dpctl for every case, then the kubelet."""
    wrong: list[str] = []
    for number, stage in enumerate(stages):
        with holding(bench, stage, number):
            said = asked(bench, stage.cases)
            for name, case in stage.cases.items():
                wrong += [f"{name}: {text}" for text in differences(bench, case, said[name])]
    assert not wrong, "\n".join(wrong)


@contextmanager
def holding(bench: Bench, stage: Stage, number: int) -> Iterator[None]:
    names = [f"holder-{number}-{at}-{bench.node.name}" for at in range(len(stage.holders))]
    for name, amounts in zip(names, stage.holders, strict=True):
        assert created(bench, Case("yes", amounts), name)["admitted"]
    yield
    for name in names:
        bench.node.delete_pod(name)


def differences(bench: Bench, case: Case, said: Mapping[str, Any]) -> Iterator[str]:
    """What dpctl said, against what the kubelet does."""
    name = f"case-{bench.node.name}"
    done = created(bench, case, name)
    try:
        found = "yes" if done["admitted"] else done["reason"]
        if found != case.expected:
            yield f"the kubelet said {found} ({done['message']}), not {case.expected}"
        for key in ("admitted", "reason", "message"):
            if said[key] != done[key]:
                yield f"{key}: dpctl {said[key]!r}, the kubelet {done[key]!r} ({said['why']})"
        if done["admitted"] and said["admitted"]:
            shares = {
                c["container"]: {s["resource"]: s["requested"] for s in c["devices"]}
                for c in said["containers"]
            }
            if shares != case.devices:
                yield f"dpctl answers for {shares}, asked for {case.devices}"
            yield from elsewhere(bench, said, name)
    finally:
        bench.node.delete_pod(name)


def asked(bench: Bench, cases: Mapping[str, Case]) -> dict[str, dict[str, Any]]:
    """What dpctl says to each, as if it came alone."""
    items = [case.manifest(name, bench.node.name) for name, case in cases.items()]
    stdin = json.dumps({"kind": "List", "items": items})
    result = bench.dpctl("topology", "-f", "-", "-o", "json", stdin=stdin)
    assert result.stdout, result
    said = {answer["pod"]: answer for answer in json.loads(result.stdout)["items"]}
    assert said.keys() == cases.keys()
    refused = any(not answer["admitted"] for answer in said.values())
    assert result.code == (1 if refused else 0), result
    return said


def created(bench: Bench, case: Case, name: str) -> dict[str, Any]:
    """Create the pod and wait for the kubelet's verdict."""
    api = bench.plane.api()
    pods.create(api, case.manifest(name, bench.node.name))

    def verdict() -> dict[str, Any] | None:
        status = (pods.find(api, name) or {}).get("status", {})
        if status.get("phase") == "Failed":
            message = status.get("message", "").removeprefix("Pod was rejected: ")
            return {"admitted": False, "reason": status.get("reason"), "message": message}
        # Containers are shown as soon as the pod is admitted, long before they run.
        if status.get("containerStatuses") or status.get("initContainerStatuses"):
            return {"admitted": True, "reason": None, "message": None}
        return None

    return wait_for(f"the kubelet's verdict on {name}", verdict, 120, interval=0.05)


def elsewhere(bench: Bench, said: Mapping[str, Any], pod: str) -> Iterator[str]:
    """Devices that dpctl did not call eligible, CPUs that it would not have chosen."""
    uid = bench.pod_uid(pod)
    entries = bench.checkpoint()["Data"]["PodDeviceEntries"] or []
    state = json.loads((bench.node.kubelet_dir / "cpu_manager_state").read_text())
    for container in said["containers"]:
        name = container["container"]
        for share in container["devices"]:
            taken = {
                device
                for e in entries
                if (e["PodUID"], e["ContainerName"], e["ResourceName"])
                == (uid, name, share["resource"])
                for devices in e["DeviceIDs"].values()
                for device in devices
            }
            if len(taken) != share["requested"] or not taken <= set(share["eligible"]):
                yield f"{share['resource']}: {sorted(taken)} of {share['eligible']}"
        cpus = state.get("entries", {}).get(uid, {}).get(name, "")
        if cpus != cpuset.render(container["cpus"]):
            yield f"CPUs of {name}: {cpus}, dpctl {cpuset.render(container['cpus'])}"
