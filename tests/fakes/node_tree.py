"""A node's / in a short directory, healthy until a test breaks a part of it, and dpctl run on it.

Whatever the fault, a run must be `tidy`: no traceback, nothing raw on the terminal, JSON that
parses. What a fault means for exit code and words is each test's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dpctl.model import Allocation
from dpctl.pb.podresources.v1 import podresources_pb2 as pb
from dpctl.statefiles.device_checkpoint import encode_checkpoint
from tests.fakes import api_server
from tests.fakes.grpc_sockets import (
    ALLOCATABLE,
    GET,
    INFO,
    LIST,
    OPTIONS,
    Answer,
    serving,
    short_directory,
)
from tests.fakes.kubeconfigs import kubeconfig
from tests.run import Result, dpctl

RESOURCE = "vendor.example/gpu"
NODE_NAME = "worker-0"
NODE_PATH = f"/api/v1/nodes/{NODE_NAME}"
FORMATS = ("table", "wide", "json")
MIB = 1 << 20

# Cursor and screen, order of a line, line ends of every kind, what is no text.
CONTROLS = "\x00\x1b[2J\x1b]0;x\x07\r\n\t\x7f\x85\x9b31m\u202e\u2066\u200f\ufeff\u2028"

_SAID = ("error: ", "warning: ", "hint: ", "note: ")


class NodeTree:
    """Directories and plain files of a node; what listens there is the caller's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.node_name = NODE_NAME
        kubelet = root / "var/lib/kubelet"
        self.kubelet = kubelet
        self.device_plugins = kubelet / "device-plugins"
        self.checkpoint = self.device_plugins / "kubelet_internal_checkpoint"
        self.registry = kubelet / "plugins_registry"
        self.pod_resources = kubelet / "pod-resources/kubelet.sock"
        self.kubelet_config = kubelet / "config.yaml"
        self.numa = root / "sys/devices/system/node"
        self.kubeconfig = root / "kubeconfig"
        self.home = root / "home"
        self.nothing = root / "nothing"
        for directory in (
            self.device_plugins,
            self.registry,
            self.pod_resources.parent,
            self.home,
            self.nothing,
            root / "var/log/pods/ml_trainer_uid-1",
            root / "sys/bus/pci/devices",
        ):
            directory.mkdir(parents=True)
        self.kubelet_config.write_text("nodeStatusUpdateFrequency: 10s\n")
        numa_node = self.numa / "node0"
        numa_node.mkdir(parents=True)
        (self.numa / "online").write_text("0\n")
        (numa_node / "cpulist").write_text("0-3\n")
        (numa_node / "distance").write_text("10\n")
        (numa_node / "meminfo").write_text("Node 0 MemTotal:  16384 kB\n")

    @property
    def env(self) -> dict[str, str]:
        return {
            "DPCTL_HOST_ROOT": str(self.root),
            "KUBECONFIG": str(self.kubeconfig),
            "NODE_NAME": self.node_name,
            "HOME": str(self.home),
        }

    def run(self, *arguments: str, **env: str) -> Result:
        return tidy(dpctl(*arguments, env={**self.env, **env}), arguments)

    def ask(self, *arguments: str, formats: Sequence[str] = FORMATS) -> list[Result]:
        """The command in several formats, side by side."""
        lines = [(*arguments, "-o", output) for output in formats]
        return self.ask_all(lines)

    def ask_all(self, lines: Sequence[Sequence[str]]) -> list[Result]:
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(lambda line: self.run(*line), lines))


def tidy(result: Result, arguments: Sequence[str] = ()) -> Result:
    """What holds of every run, whatever it met."""
    assert "Traceback" not in result.out + result.err, (arguments, result.err[-3000:])
    assert "internal error" not in result.out + result.err, (arguments, result.err[-3000:])
    documents = "json" in arguments
    for text in (result.err, "" if documents else result.out):
        raw = {c for c in set(text) - {"\n"} if unicodedata.category(c) in ("Cc", "Cf", "Cs")}
        assert not raw, (arguments, raw)
    lines = result.err.splitlines()
    strange = [line for line in lines if not line.startswith(_SAID) and line not in NOTHING]
    assert not strange, (arguments, strange[:5])
    errors = [line for line in lines if line.startswith("error: ")]
    ends = result.code not in (0, 1) and not result.out and "--strict" not in arguments
    assert len(errors) == (1 if ends else 0), (
        arguments,
        result.code,
        result.err[-3000:],
    )
    if documents and result.out:
        json.loads(result.out)
    return result


NOTHING = ("No resources found", "No differences found")


def said(result: Result, kind: str, *words: str) -> None:
    """One line of that kind has all the words, and a hint comes after it."""
    lines = result.err.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(f"{kind}: ") and all(word in line for word in words):
            after = lines[number + 1] if number + 1 < len(lines) else ""
            assert after.startswith("hint: "), f"no next step after: {line[:300]}"
            return
    raise AssertionError(f"no {kind} with {words} in:\n{result.err[-3000:]}")


def items(result: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(result.out)["items"]
    return found


# --- a healthy node -------------------------------------------------------------------------------


def checkpoint(registered: Mapping[str, Sequence[str]] | None = None) -> bytes:
    held = Allocation("uid-1", "main", RESOURCE, {0: ("gpu-0",)}, None)
    return encode_checkpoint([held], registered or {RESOURCE: ["gpu-0", "gpu-1"]})


def listed(*ids: str, resource: str = RESOURCE, container: str = "main") -> pb.PodResources:
    devices = [pb.ContainerDevices(resource_name=resource, device_ids=ids)]
    held = pb.ContainerResources(name=container, devices=devices)
    return pb.PodResources(name="trainer", namespace="ml", containers=[held])


def kubelet_answers(*pods: pb.PodResources) -> dict[str, Answer]:
    pods = pods or (listed("gpu-0"),)
    offered = [
        pb.ContainerDevices(resource_name=RESOURCE, device_ids=[name])
        for name in ("gpu-0", "gpu-1")
    ]
    return {
        LIST: pb.ListPodResourcesResponse(pod_resources=pods).SerializeToString(),
        GET: pb.GetPodResourcesResponse(pod_resources=pods[0]).SerializeToString(),
        ALLOCATABLE: pb.AllocatableResourcesResponse(devices=offered).SerializeToString(),
    }


PLUGIN_ANSWERS: dict[str, Answer] = {OPTIONS: b"", INFO: b""}


def node_document(**capacity: object) -> dict[str, Any]:
    keys: dict[str, object] = {"cpu": "4", RESOURCE: "2", **capacity}
    return {
        "kind": "Node",
        "metadata": {"name": NODE_NAME, "uid": "node-uid"},
        "status": {"capacity": keys, "allocatable": dict(keys)},
    }


def pod_document(name: str, **status: object) -> dict[str, Any]:
    limits = {"limits": {RESOURCE: "1"}, "requests": {RESOURCE: "1"}}
    return {
        "metadata": {"namespace": "ml", "name": name, "uid": f"uid-{name}"},
        "spec": {"nodeName": NODE_NAME, "containers": [{"name": "main", "resources": limits}]},
        "status": {"phase": "Running", **status},
    }


def serve_cluster(server: api_server.Server) -> None:
    trainer = pod_document("trainer")
    trainer["metadata"]["uid"] = "uid-1"
    greedy = pod_document("greedy", phase="Failed", reason="UnexpectedAdmissionError", message="no")
    server.answer(NODE_PATH, api_server.json_reply(node_document()))
    server.answer("/api/v1/pods", api_server.json_reply({"items": [trainer, greedy]}))


@contextmanager
def node(
    *,
    kubelet: bool = True,
    cluster: bool = True,
    plugin: bool = True,
    with_checkpoint: bool = True,
) -> Iterator[NodeTree]:
    """A node all of whose sources answer, but those switched off."""
    with short_directory() as top, ExitStack() as stack:
        tree = NodeTree(top)
        if with_checkpoint:
            tree.checkpoint.write_bytes(checkpoint())
        if kubelet:
            stack.enter_context(serving(tree.pod_resources, kubelet_answers()))
        if plugin:
            stack.enter_context(serving(tree.device_plugins / "gpu.sock", PLUGIN_ANSWERS))
        if cluster:
            server = stack.enter_context(api_server.running())
            serve_cluster(server)
            kubeconfig(tree.kubeconfig, server.url)
        yield tree


# --- as somebody without rights -------------------------------------------------------------------

# Everything is imported before the rights go: the interpreter may be where nobody else may read.
_AS_NOBODY = """
import concurrent.futures.thread, importlib, os, pkgutil, sys
import grpc, kubernetes.config.kube_config, urllib3, yaml, dpctl
for module in pkgutil.walk_packages(dpctl.__path__, "dpctl."):
    if not module.name.startswith(("dpctl.lab", "dpctl.gen", "dpctl.pb", "dpctl.tui")):
        importlib.import_module(module.name)
for name in ("deviceplugin.v1beta1.deviceplugin", "podresources.v1.podresources",
             "podresources.v1alpha1.podresources", "pluginregistration.v1.pluginregistration"):
    importlib.import_module(f"dpctl.pb.{name}_pb2")
os.setgroups([]); os.setgid(65534); os.setuid(65534)
from dpctl.__main__ import main
raise SystemExit(main())
"""


def as_nobody(tree: NodeTree, *arguments: str) -> Result:
    """dpctl without any rights (the tests must run as root)."""
    done = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, *arguments],
        env={**os.environ, **tree.env, "COLUMNS": "80"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    result = Result(done.returncode, done.stdout.decode(), done.stderr.decode())
    return tidy(result, arguments)
